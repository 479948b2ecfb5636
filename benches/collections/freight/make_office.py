#!/usr/bin/env python3
"""Makes the Word, Excel, PDF and PowerPoint files of this collection: make_office.py [FOLDER]

Needs the packages listed in ../office.py; the same input gives the same text and bytes.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from office import Office  # noqa: E402

office = Office(__file__, "Harnsey Carriers", (2025, 5, 6, 8, 0, 0))

office.docx("parcels nobody wants.docx", "What happens with parcels nobody wants", [
    ("p", "In force from 1 May 2025. Written by Agnes Tolliday, agreed with Bart Oduya. Rule sheet 7 of 2022 is withdrawn."),
    ("h", "Parcels"),
    ("p", "We try twice. After the second time the parcel lies at the counter of the depot for 12 working days. The addressee gets a message on day 1 and day 8."),
    ("p", "Then it travels home to the sender. The way back costs the sender 70 % of the outward freight. If the sender says so in the portal, a third try at the price of the tariff is possible instead."),
    ("h", "Food and flowers"),
    ("p", "Perishable goods are not kept: two working days, then the contents go to the city food bank, or into the bin. A photo is taken."),
    ("h", "No label at all"),
    ("li", ["Opened by Agnes or Selma and one more person, with a list.", "Kept for six months in the grey cupboard of the archive.", "After that the contents go to charity. There is no auction any more."]),
    ("h", "Freight"),
    ("table", [["What", "Free storage", "After that, per pallet space and day"], ["Quarter and half pallets", "2 days", "6.50 euro"], ["Full pallets", "1 day", "9.80 euro"], ["Dangerous goods", "none", "35.00 euro"]]),
])

office.docx("brambley-contract.docx", "Transport contract Brambley Foods", [
    ("p", "TRANSPORT CONTRACT no. 2024-17 between Harnsey Carriers, Weir Road 40, Tarnbridge (the carrier) and Brambley Foods (the customer). Signed 9 April 2024."),
    ("h", "What is carried"),
    ("p", "Chilled ready meals on euro pallets, on average 60 pallets a week, at least 45. If it is fewer over four weeks, the shortfall is charged at 31 euro a pallet."),
    ("h", "Price"),
    ("table", [["Destination", "Price per pallet"], ["Coldwick", "46.50"], ["Ulverfoss", "71.00"], ["Scarrow Quay", "58.50"]]),
    ("p", "The fuel component is settled by an index of its own (clause 5) and not by the general tariff: base 1.42 euro per litre, each full cent above adds 0.25 %."),
    ("h", "Quality"),
    ("p", "Goods are handed over and kept between +2 and +5 degrees. A recorder travels on the first and the last pallet. Deliveries on time: 97.5 % in the month; below that 2 % of the month's invoice is credited."),
    ("h", "Term"),
    ("p", "Three years, until 30 April 2027. It goes on by one year unless one side gives notice in writing four months before the end."),
    ("h", "Contacts"),
    ("p", "Brambley: Hetty Vosper, despatch. Harnsey: Selma Krantz; at night Pavel Stroud."),
])

office.xlsx("figures-2024.xlsx", [
    ("Fuel and km", [["Depot", "Diesel litres", "Electricity kWh", "Kilometres", "Litres per 100 km", "Remark"],
                     ["Tarnbridge", 488200, 612400, 1697000, 28.8, "incl. shunter"],
                     ["Coldwick", 61300, 204900, 702500, 11.9, "e-vans since June"],
                     ["Ulverfoss", 203700, 88300, 741800, 27.5, ""],
                     ["Scarrow Quay", 96400, 47100, 338900, 28.4, "shed heating is gas"]]),
    ("Absence", [["Depot", "Staff", "Sick days per head", "Accidents reportable"], ["Tarnbridge", 118, 13.1, 4], ["Coldwick", 52, 15.6, 3], ["Ulverfoss", 31, 9.4, 1], ["Scarrow Quay", 14, 7.2, 0]]),
    ("Plan 2025", [["Investment", "Planned EUR", "Ordered to 30.09.", "Who"], ["Two tractors", 248000, 0, "Bart"], ["E-vans, 3", 141000, 141000, "Agnes"], ["Yard lights Ulverfoss", 24000, 21600, "Yusuf"], ["Rack inspection and repair", 8500, 9120, "Selma"], ["UPS scanner wall", 0, 0, "Teodor"]]),
])

office.pdf("conditions-2025.pdf", "Conditions of carriage, edition 2025", [
    ("p", "Valid for all orders placed from 1 January 2025. Earlier editions are not continued."),
    ("h", "I. Orders"),
    ("p", "An order is placed by portal, data link or in writing. Collections are free from five parcels on; below that 4.50 euro are charged for each trip."),
    ("h", "II. Packing"),
    ("p", "The sender packs so that the goods withstand a fall from 80 cm and a load of 200 kg per square metre. Liquids are sealed twice. Used boxes are allowed if old labels have been removed."),
    ("h", "III. Excluded goods"),
    ("p", "Money, jewellery above 500 euro, passports, tickets, works of art, living animals, firearms and parts of them."),
    ("page", ""),
    ("h", "IV. Damage and loss"),
    ("p", "Visible damage is written down on delivery. Hidden damage is reported within five working days with photographs of inside and outside. Our liability is 11.50 euro per kilogram of the goods concerned; delay: the freight at most, once."),
    ("p", "A parcel is taken as lost when it has not been scanned for 14 days. Claims fall under the statute of limitation after one year."),
    ("h", "V. Invoices"),
    ("table", [["Kind of customer", "Invoice", "Payable in"], ["Account, monthly", "last working day", "21 days"], ["Account, weekly", "Monday", "10 days"], ["Counter", "at once", "-"]]),
    ("p", "From the second reminder on we charge 12 euro. Objections to an invoice: 30 days."),
    ("h", "VI. Law"),
    ("p", "Place of jurisdiction is Coldwick. Arbitration before a dispute: Chamber of Trade, Pelloe."),
], rule=("GRID", 0.4, "#999999"), heading="Heading3")

office.pptx("welcome-warehouse.pptx", [
    ("Welcome to the shed", ["Tarnbridge, room over the canteen, first Monday of the month, 13:00", "Your guide: Ewa Lindqvist", "You get: card, shoes, vest, locker number"]),
    ("Seven ways to hurt yourself", ["Lifting over 25 kg alone", "Walking backwards with a pallet truck", "Reaching into the sorter without LOCK", "Rings and necklaces at the belt", "Standing under raised forks", "Jumping off the bay", "Box cutters with the blade out"]),
    ("Colours of the cages", ["Blue: Coldwick", "White: Ulverfoss", "Yellow: Scarrow Quay", "Green: Morrick", "Red: reject, do not load"]),
    ("Alarm sounds", ["Long steady tone: fire, leave by the nearest door", "Short beeps: sorter starts in 10 seconds", "Two-tone: gas in the charging bay, open doors, no switches"]),
    ("Questions", ["Night lead 4325, day 4320", "Works council: Sunil Marchetti, Thursdays 14-15"]),
])
