#!/usr/bin/env python3
"""Makes the Word, Excel and PDF files of this collection: make_office.py [FOLDER]

Needs ../office.py (or its folder in PYTHONPATH) and python-docx, openpyxl, reportlab;
the same input gives the same text and bytes.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from office import Office  # noqa: E402

office = Office(__file__, "Ferrant & Loe Laboratories", (2025, 10, 8, 9, 0, 0))

office.docx("staff-rules-2025.docx", "Staff rules", [
    ("h1", "Staff rules"),
    ("p", "Edition of 1 January 2025, agreed with the works committee. Kept by Stefan Adair, personnel. Where the law or a contract is better for you, that counts."),
    ("h2", "1 The firm"),
    ("p", "Josephine Ferrant and Tadeusz Loe opened a hardness shop in a former bakery in 1971. The dock site was bought in 1988, the first accreditation came in 1994. Today 40 people work here, six of them part time."),
    ("h2", "2 Beginning and ending"),
    ("p", "Probation is five months; in this time either side may give two weeks' notice. Afterwards the notice period is six weeks to the end of a month for everybody, and three months for signatories and heads of department."),
    ("p", "On the first day you get glasses, shoes, a locker and a Specula account. Calibration staff get two white coats more, which are washed in the house because of the fluff."),
    ("h2", "3 Working time"),
    ("p", "The week has 37.5 hours, Monday to Friday. Core time is 9:00 to 15:00, flexible time from 6:30 to 18:30. The flexitime account may hold at most plus 50 hours. At Marram Dock the day begins at 6:30, because concrete does."),
    ("p", "Overtime is ordered by the head of department beforehand. It is given back as time, or bought out once a year with 20 % on top."),
    ("h2", "4 Holiday and other days off"),
    ("p", "Holiday is 27 days a year. After ten years with the firm it is 29 days. Up to 4 days may be carried over and must be taken by 31 March. Requests go through Specula > People; the head of department answers within a week. In each department at least two authorised persons must be present."),
    ("table", [["Occasion", "Days"], ["Own wedding", "2"], ["Birth of own child", "3"], ["Death of parent, child or partner", "4"], ["Death of grandparent or sibling", "1"], ["Moving house", "1"], ["Donating blood", "half a day"], ["Exam for a qualification we asked for", "the day and the day before"]]),
    ("h2", "5 Illness"),
    ("p", "Ring your head of department before 8:00, or leave a message on 0555 704 299. A doctor's note is needed from the fourth day. For a sick child under twelve you get up to eight paid days a year. Full pay for six weeks, then half pay for another ten."),
    ("h2", "6 Pay and extras"),
    ("table", [["Extra", "Amount"], ["On call for the curing tanks, per week", "£65"], ["Call-out to Marram Dock at night", "£48 plus time"], ["Working on a customer's site, per day", "£12"], ["Signatory's allowance, per month", "£140"], ["First aider, per year", "£180"], ["Apprentice's final exam passed with distinction", "£500"], ["Bringing a new colleague who stays for a year", "£750"]]),
    ("p", "Pay is on the account on the 26th. If that is a weekend, on the Friday before."),
    ("p", "The firm pays 6 % of the wage into the pension; you may add what you like. Loans for a bicycle up to £1,800 are paid back in 24 parts."),
    ("h2", "7 Travel"),
    ("p", "Take the pool car if it is free. Own car: £0.42 per mile. Train: second class, first class only above three hours. Hotel up to £105 a night, breakfast included; in the capital £150. Meals: £16 for more than eight hours, £34 for a whole day. Claims on form F-40 within six weeks, receipts as photographs."),
    ("p", "Not paid: fines, minibar, lost keys, upgrades, presents for customers."),
    ("h2", "8 Training"),
    ("p", "Every technician has five training days a year. Courses above £1,200 need a contract: whoever leaves within two years pays back in proportion. Membership of one professional body is paid."),
    ("h2", "9 Safety"),
    ("p", "Glasses in all rooms with a yellow stripe on the floor. No rings, chains or gloves at rotating machines. Nobody runs a machine alone after 18:30. Accidents, and what was nearly one, go into the orange book next to the hatch on the same day. First aiders are named in the list of people. The defibrillators hang at reception and at gate B."),
    ("p", "Expectant mothers tell Stefan Adair as early as they like; etching, the impact room and lifting above 5 kg are then out."),
    ("h2", "10 Other things"),
    ("li", ["Dogs: not in the house, with the exception of Bram Hendry's old spaniel in the workshop office.", "Private jobs in the workshop: after hours, material paid, with Bram's yes.", "Photographs of parts: only with the customer's consent in Specula.", "Side jobs are to be reported; jobs for other laboratories are not permitted."]),
])

office.docx("concrete-cubes-cm-001.docx", "CM-001 Compressive strength of concrete cubes", [
    ("h1", "CM-001 Compressive strength of concrete cubes"),
    ("p", "Issue 7, 17 February 2025. Owner: Jodie Kettle. Place: Marram Dock, hall 2. Released by Declan Moyse."),
    ("h2", "Receiving"),
    ("p", "Cubes come in by van or from the customer at gate B. Each needs: mark, date of casting, site, mix, age for the test. A cube without date of casting is not tested; the office rings the site. Cubes younger than 16 hours stay in the mould. Damaged edges are photographed."),
    ("h2", "Curing"),
    ("p", "In water of 20 ± 2 °C, tanks 1 to 3. Tank 4, new in May, is for lightweight concrete only. At least 15 mm of water between cubes. The logger alarms below 18.0 and above 22.0 °C and rings the person on call; on call are by turns Jodie Kettle, Piotr Zielak, Callum Reith and Nia Bevan. Refill with warm water, never straight from the hose in winter."),
    ("h2", "Ages and tolerances"),
    ("table", [["Age", "Permitted"], ["24 hours", "± 30 minutes"], ["3 days", "± 2 hours"], ["7 days", "± 4 hours"], ["28 days", "± 8 hours"], ["56 days", "± 12 hours"]]),
    ("p", "If day 28 falls on a Sunday, the customer is offered testing on the Monday with a remark in the report, or a Sunday test at double price."),
    ("h2", "Test"),
    ("li", ["Take the cube from the tank not more than four hours before pressing; keep it under a wet cloth.", "Wipe off water and grit, weigh to 5 g, measure the three sizes.", "Check flatness with the straightedge and feeler gauge 0.06 mm. If it goes under: grind.", "Put the cube in the press with the trowelled face to the side, centred within 1 mm.", "Load at 0.6 MPa per second until the force drops.", "Note the failure pattern by its number on the wall chart; numbers 7 to 9 are unsatisfactory.", "Sweep the platens. A crumb of grit costs 3 MPa."]),
    ("h2", "Result"),
    ("p", "Strength to 0.1 MPa, density to 10 kg/m3. If a cube of a pair is more than 15 % from the mean, tell Declan Moyse before the report leaves. Unsatisfactory failure is reported, and the press is checked the same day."),
    ("h2", "Press"),
    ("p", "Contest 3000 kN, ball seat oiled every Monday with two drops of SAE 20. Verified once a year by Kraftlabor Weist. Platens are ground when the gauge finds more than 0.05 mm."),
    ("h2", "Fresh concrete"),
    ("p", "Slump is measured within two minutes after lifting the cone. A sheared slump is repeated once; if it shears again, write 'shear'. Air content with the pot at 8 litres, tap ten times with the mallet."),
])

office.xlsx("equipment-register.xlsx", [
    ("Instruments", [["Number", "Instrument", "Room", "Bought", "Price GBP", "Last calibration", "Next calibration", "Label", "Keeper"],
        ["F-101", "Tensora 250 testing machine", "10", 2022, 128400, "2025-08-13", "2026-08-13", "green", "Gwendal Pryce"],
        ["F-102", "Brandt 600 testing machine", "10", 1998, 61200, "2025-08-13", "2026-08-13", "green", "Kofi Asante"],
        ["F-105", "Pendulum IK-300", "12", 2009, 27900, "2025-04-02", "2026-04-02", "green", "Sadie Fairbrother"],
        ["F-106", "Kryolin K2 cold bath", "12", 2016, 8750, "2025-09-18", "2026-03-18", "green", "Sadie Fairbrother"],
        ["F-110", "Durilab DV-30 hardness tester", "11", 2014, 19800, "2025-06-05", "2026-06-05", "green", "Marek Dudek"],
        ["F-111", "Portable hardness tester Pico", "11", 2011, 2350, "2023-06-01", "none", "yellow", "Isla Thornbury"],
        ["F-115", "Ageing oven AO-2", "11", 2013, 6900, "2025-09-12", "2026-09-12", "green", "Marek Dudek"],
        ["F-201", "Spectrometer Lumora 8", "21", 2019, 94500, "2025-07-09", "2026-01-09", "green", "Amina Yusuf"],
        ["F-202", "Combustion analyser CS-5", "21", 2007, 38200, "2025-05-20", "2025-11-20", "green", "Amina Yusuf"],
        ["F-205", "Microscope Axiolux", "22", 2018, 22400, "2025-01-28", "2026-01-28", "green", "Benoit Caron"],
        ["F-208", "Fume cupboard 2", "20", 2003, 5200, "2025-02-11", "2026-02-11", "red", "Harriet Stobbs"],
        ["F-301", "Contest 3000 press", "Hall 2", 2005, 44800, "2025-03-26", "2026-03-26", "green", "Jodie Kettle"],
        ["F-305", "Sieve tower", "Hall 1", 2012, 4100, "2025-08-25", "2026-08-25", "green", "Nia Bevan"],
        ["F-308", "Nuclear density gauge", "Hall 1", 2010, 9600, "2022-05-04", "none", "red", "Declan Moyse"],
        ["F-401", "Length machine Metrix 1", "Cathedral", 2015, 71300, "2025-02-20", "2027-02-20", "green", "Viktor Halasz"],
        ["F-405", "Temperature block calibrator", "31", 2020, 7450, "2025-04-16", "2026-04-16", "green", "Leith Cameron"],
        ["F-408", "Torque bench 1000 Nm", "31", 2017, 18600, "2025-03-07", "2026-03-07", "green", "Rhona Steel"],
        ["F-409", "Balance 34 kg for site visits", "van", 2021, 3900, "2025-10-01", "2026-10-01", "green", "Deborah Nwosu"],
        ["F-501", "CNC lathe Turnwell 40", "Workshop", 2025, 83150, "n/a", "n/a", "n/a", "Alfie Nunn"],
        ["F-502", "Broaching machine for notches", "Workshop", 2001, 12700, "n/a", "n/a", "n/a", "Shona Keir"]]),
    ("Out of use", [["Number", "Since", "Reason", "What next"],
        ["F-208", "2025-09-02", "air speed at the sash 0.38 m/s, limit 0.5", "motor on order, expected 20 October"],
        ["F-308", "2022-11-15", "source handed back, no radiation officer any more", "to be struck off at the review of 2026"],
        ["F-112", "2024-03-19", "creep frame, beam bent when it was moved", "scrapped 2025-01"]]),
    ("Service contracts", [["Equipment", "Firm", "Until", "GBP a year", "Reaction"],
        ["Tensora 250", "Morvane", "2027-05-31", 4850, "two working days"],
        ["Lumora 8", "Spektra Service", "2026-02-28", 6200, "next working day"],
        ["Metrix 1", "Helvmetra", "2025-12-31", 3100, "ten working days"],
        ["Air conditioning, calibration room", "Frostad", "2026-06-30", 2740, "eight hours"]]),
    ("Vehicles", [["Plate", "Vehicle", "Driver", "Since", "Miles on 1 October 2025", "Next inspection"],
        ["FL 21", "Electric van Velox", "Norris Beale", "2025-09-09", 1180, "2028-09"],
        ["FL 17", "Diesel van Hauler", "Kath Dolan", "2019-04-02", 88450, "2026-04"],
        ["FL 19", "Pick-up for site sampling", "Wendy Marsh", "2021-06-15", 64020, "2026-06"],
        ["FL 12", "Pool car", "by booking", "2018-03-01", 71900, "2026-01"]]),
])

office.pdf("terms-of-business-2025.pdf", "Terms of business", [
    ("p", "Ferrant & Loe Laboratories, 14 Anvil Street, Skelder. Valid for orders from 1 April 2025. They replace the terms of 2021."),
    ("h", "1 Order"),
    ("p", "An order comes into being when we confirm it, or when we begin. Quotations hold for 60 days. Changes after the work has begun are charged by time at 74 pounds per hour."),
    ("h", "2 Samples"),
    ("p", "The customer is responsible for taking the sample, unless our sampler did it. Results hold for the pieces tested and not for the rest of a delivery. Dangerous contents have to be declared. Carriage to us is at the customer's risk; our own vehicles are insured up to 25,000 pounds per trip."),
    ("h", "3 Prices and payment"),
    ("p", "Prices are net. The smallest invoice is 55 pounds. Payment within 30 days; customers abroad and new customers pay in advance until the third order. From the second reminder on we charge 12 pounds. After 60 days without payment certificates can no longer be opened in the customer door."),
    ("h", "4 Cancelling"),
    ("table", [["When", "Charge"], ["before samples arrive", "nothing"], ["after arrival, before machining", "25 % of the price"], ["after machining", "60 % of the price"], ["after the test has begun", "the full price"], ["witness day, less than three working days before", "one day"]]),
    ("h", "5 Times"),
    ("p", "Standard times are aims and not promises. For express orders we do promise: if we are late for a reason that lies with us, the express surcharge is not charged. Further damages for delay are excluded."),
    ("h", "6 Liability"),
    ("p", "For damage to instruments and samples up to their present value. For consequences of a wrong result up to ten times the price of the order, at most 50,000 pounds. No limit where the law knows none."),
    ("page", None),
    ("h", "7 Reports and the mark"),
    ("p", "Reports may be copied only as a whole. The NAB mark may not be used by customers in advertisements. Opinions and interpretations are marked with a vertical line at the margin."),
    ("h", "8 Subcontracting"),
    ("p", "Work may be passed to accredited partners; the customer is asked beforehand and the report names the partner. At present: Quarrell Analytics (etching with hydrofluoric acid, titanium), Stennick Radiography (X-rays of welds), Nordmano (repair of gauges)."),
    ("h", "9 Uncollected instruments"),
    ("p", "Instruments not fetched within six months after notice are given to the technical college of Skelder."),
    ("h", "10 Complaints and court"),
    ("p", "Complaints about results within 14 days after the report, with the remaining pieces still untouched. Skelder county court."),
], foot="Ferrant & Loe Laboratories")
