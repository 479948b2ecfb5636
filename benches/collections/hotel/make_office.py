#!/usr/bin/env python3
"""Makes the Word, Excel and PDF files of this collection: make_office.py [FOLDER]

Needs ../office.py (or its folder in PYTHONPATH) and the packages listed there; the same input gives the same text and bytes.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from office import Office  # noqa: E402

office = Office(__file__, "Corrie & Bell Hotels", (2026, 1, 8, 9, 0, 0))

office.docx("working-time-and-leave-2026.docx", "Working time and leave 2026", [
    ("h1", "Working time and leave"),
    ("p", "In force from 1 January 2026. Replaces the rules of 1 January 2023. Agreed between the management and the works council on 4 December 2025. Questions: Henrike Solberg, extension 220."),
    ("h2", "1 Holidays"),
    ("p", "Full-time employees have 29 working days of holiday a year; after five years 31, after ten years 32. Part-time employees have the share that corresponds to their days per week. Whoever joins or leaves during the year gets one twelfth for each full month."),
    ("p", "Holidays are asked for in the Staffdesk app, at least five weeks ahead for one week or longer and ten days ahead for single days. The head of department answers within seven days. No answer within that time means yes."),
    ("p", "Blocked times: 10 July to 25 August at Kestrel Bay; 20 December to 3 January in all houses. Each department may let one person go even in a blocked time, drawn by lot in March."),
    ("p", "Up to six days may be carried over. They must be taken by 31 March, otherwise they lapse. The green slips are no longer accepted."),
    ("h2", "2 Special leave, paid"),
    ("table", [["Occasion", "Days"],
               ["Own wedding or registered partnership", "2"],
               ["Birth or adoption of a child", "4"],
               ["Death of partner, parent or child", "5"],
               ["Death of brother, sister or grandparent", "2"],
               ["Moving house, once in two years", "1"],
               ["Child under 12 ill, per year and child", "6"],
               ["Exam at school or vocational college", "the day of the exam"],
               ["Giving blood", "half a day, three times a year"]]),
    ("h2", "3 Working hours and rota"),
    ("p", "The full-time week has 39 hours, on five days. Two free days in a row are guaranteed at least twice a month. The rota is published 14 days ahead. After that, it is changed only with the consent of the person; whoever steps in within 24 hours gets a bonus of 30 EUR."),
    ("p", "Between two shifts lie at least 11 hours. Split shifts are allowed only in Quince and the bistro, at most twice a week, with a pause of three hours at most, and bring 12 EUR a day."),
    ("h2", "4 Breaks"),
    ("p", "30 minutes in shifts of more than five and a half hours, 45 minutes in shifts of more than nine. Breaks are taken, not collected. Smoking is not a break: clock out for it."),
    ("h2", "5 Overtime"),
    ("p", "Only if the head of department asked for it. The account holds at most 60 hours. From the 61st hour on, hours are paid with a supplement of 20 %. Hours can be taken as free days in January, February and November without asking for reasons. The account may be 15 hours in the red."),
    ("h2", "6 Unpaid leave"),
    ("p", "Up to four weeks a year, only outside the season. After three years, a longer break of up to six months is possible, to be asked for half a year ahead."),
    ("h2", "7 Parents and carers"),
    ("p", "Parents of children under eight can ask for fixed shifts. They are granted unless more than a third of the department already has them. Pregnant employees do no night shifts and do not work in the sauna area."),
])

office.docx("contract-blaydon-linen.docx", "Contract on the hire and laundry of linen", [
    ("h1", "Contract on the hire and laundry of linen"),
    ("p", "Between Corrie & Bell Hotels (the Customer) and Blaydon Linen Service (the Contractor). Number L-2024-31. Signed on 9 September 2024."),
    ("h2", "1 Subject"),
    ("p", "The Contractor lends bed linen, towels, bath sheets, robes and table linen to the three houses and washes them. Guests' laundry and uniforms are not part of it."),
    ("h2", "2 Term and notice"),
    ("p", "From 1 October 2024 to 30 September 2027. It goes on for a year each time unless one side gives notice in writing four months before it ends."),
    ("h2", "3 Deliveries"),
    ("p", "Fernwater daily except Sunday, by 7:30. Kestrel Bay Monday, Wednesday, Friday and, from June to September, also Saturday, by 9:00. Lanternhouse Tuesday, Thursday and Saturday, before 8:00, because Chandler Lane is closed to lorries afterwards. Soiled linen goes back in the same trolleys. Orders by 14:00 on the day before."),
    ("h2", "4 Prices per piece"),
    ("table", [["Piece", "EUR"], ["Sheet, double", "1.34"], ["Duvet cover", "1.58"], ["Pillow case", "0.49"], ["Hand towel", "0.38"], ["Bath sheet", "0.92"], ["Robe", "2.65"], ["Napkin", "0.21"], ["Table cloth, large", "2.10"]]),
    ("p", "Prices stay until 30 September 2026 and may then rise with the wage index, at most 3.5 %."),
    ("h2", "5 Quality and penalties"),
    ("p", "More than 2 % of stained or torn pieces in one delivery: the whole delivery is free. A delivery that is more than three hours late: 90 EUR. A missed delivery: 250 EUR and the costs of a replacement."),
    ("h2", "6 Losses"),
    ("p", "Once a year, in January, both sides count together. Up to 4 % of the stock may be missing without charge; above that the Customer pays the current value (bath sheet 7.40 EUR, robe 24.00 EUR, sheet 9.10 EUR). If the Customer claims that more than 300 pieces of one kind are missing through the Contractor's fault, an independent audit takes place; its costs are borne by the side that was wrong."),
    ("h2", "7 Environment"),
    ("p", "The Contractor washes with rain water where possible and drives to Aldmouth with an electric lorry from 2026 on."),
])

office.xlsx("mossbath-prices-2026.xlsx", [
    ("Treatments", [["Code", "Treatment", "Minutes", "Price EUR", "Room", "Remark"],
                    ["T01", "Back and neck massage", 25, 49, "any", ""],
                    ["T02", "Classic full body massage", 50, 86, "any", ""],
                    ["T03", "Hot stone massage", 75, 124, "Birch", "not with high blood pressure"],
                    ["T04", "Moss and mud wrap", 45, 79, "Willow", "shower afterwards"],
                    ["T05", "Lake salt peeling", 30, 58, "Willow", "not after shaving or sunburn"],
                    ["T06", "Foot reflexology", 40, 69, "any", ""],
                    ["T07", "Facial Classic", 60, 92, "Birch", ""],
                    ["T08", "Facial Deluxe with eyebrows", 85, 128, "Birch", ""],
                    ["T09", "Massage for two", 50, 168, "Alder", "Alder is the only room with two couches"],
                    ["T10", "Side massage for pregnant guests", 40, 74, "Alder", "from week 13"],
                    ["T11", "Teenagers' massage, 12 to 16 years", 25, 45, "any", "a parent is present"],
                    ["T12", "Manicure", 45, 52, "Fern", "no gel nails"]]),
    ("Day tickets", [["Ticket", "Monday-Friday EUR", "Weekend and holidays EUR"],
                     ["Day ticket adult", 42, 54],
                     ["Day ticket child 4-13", 17, 21],
                     ["Evening ticket from 17:30", 27, 33],
                     ["Ten tickets (Monday-Friday only)", 370, "-"],
                     ["Loan of a robe", 6.5, 6.5]]),
    ("Membership", [["Model", "Per month EUR", "Minimum term", "Notice", "What is in it"],
                    ["Pool & Gym", 64, "6 months", "4 weeks", "pool, whirlpool, gym; Monday to Friday until 16:00"],
                    ["Full Mossbath", 98, "12 months", "6 weeks", "everything at any time, 10 % off treatments"],
                    ["Village card (people of Orrin)", 79, "12 months", "6 weeks", "as Full Mossbath without discount"]]),
    ("Prices 2025", [["Treatment", "Price 2025 EUR"], ["Back and neck massage", 46], ["Classic full body massage", 81], ["Hot stone massage", 118], ["Day ticket adult, Monday-Friday", 39], ["Day ticket adult, weekend", 49]]),
])

office.pdf("celebrations-and-conferences.pdf", "Celebrations and conferences 2026", [
    ("p", "Valid for events from 1 January to 31 December 2026. Your contact: Rhoda Tamsin, extension 430, events@corriebell.example."),
    ("h", "Our rooms"),
    ("table", [["Room", "House", "m2", "Rows", "Tables", "U-shape", "Half day EUR", "Day EUR"],
               ["Heron Hall", "Fernwater", "190", "150", "96", "54", "480", "790"],
               ["Reed Room", "Fernwater", "62", "44", "32", "22", "190", "310"],
               ["Boathouse", "Fernwater", "85", "60", "50", "-", "350", "560"],
               ["Printworks", "Lanternhouse", "70", "55", "40", "26", "240", "390"],
               ["Library", "Lanternhouse", "38", "-", "14", "12", "120", "195"],
               ["Gull Deck", "Kestrel Bay", "110", "-", "-", "-", "260", "430"]]),
    ("p", "The Gull Deck is for standing receptions of up to 70 persons and can be used from May to September only. Heron Hall can be divided in two by a wall, which takes our people 40 minutes."),
    ("h", "Conference packages, per person"),
    ("li", ["Half day, 49 EUR: room, one coffee break, lunch of two courses, water, screen.", "Full day, 66 EUR: room, two coffee breaks, lunch of two courses, water and juice, screen, pin board.", "Full day Plus, 81 EUR: as before, with a walk by the lake, guided, and supper in the bistro.", "From 12 persons on. Vegan and allergy menus at no extra cost if ordered five working days before."]),
    ("h", "Weddings"),
    ("p", "Heron Hall with terrace from 14:00, menu of four courses, drinks until 23:00, wedding cake, flowers on the tables: 139 EUR per adult, children up to 5 free, 6 to 13 years 62 EUR. Minimum 45 adults. The couple sleeps in a Spa suite at our expense. A tasting for two is included from 60 guests on."),
    ("p", "The registrar comes to the Boathouse on Fridays from 11:00 to 15:00 and on the first Saturday of the month; the fee of the town, 210 EUR, is paid to the town."),
    ("page", ""),
    ("h", "Music and noise"),
    ("p", "Inside until 2:00 with doors and windows shut; after 22:00 no music outdoors. Bands use our limiter (92 dB). Fireworks are forbidden at all houses because of the birds and the neighbours; sparklers are fine on gravel."),
    ("h", "Bringing your own"),
    ("p", "Corkage is 21 EUR per bottle of wine or sparkling wine and 48 EUR per bottle of spirits. Your own cake: 3.50 EUR per person. Other food may not be brought."),
    ("h", "Night supplement"),
    ("p", "From 1:00 on, 165 EUR per started hour for staff."),
    ("h", "Numbers and payment"),
    ("li", ["The final number is due seven working days before; up to 5 % fewer are not charged.", "Deposit of 25 % at signing, another 50 % 60 days before, the rest 14 days after the invoice.", "Cancelled more than 180 days before: 300 EUR for our work. 180 to 91 days: 25 % of the agreed sum. 90 to 31 days: 55 %. Later: 85 %."]),
    ("h", "Technology"),
    ("table", [["Item", "EUR per day"], ["Projector and screen", "in all packages"], ["Second projector", "75"], ["Wireless microphone", "35"], ["Camera for hybrid meetings", "120"], ["Stage element 2 x 1 m", "28"], ["Grand piano, tuned", "190"]]),
], foot="Corrie & Bell")
