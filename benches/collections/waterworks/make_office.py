#!/usr/bin/env python3
"""Makes the Word, Excel, PDF and PowerPoint files of this collection: make_office.py [FOLDER]

Needs ../office.py (or its folder in PYTHONPATH) and the packages listed there; the same input gives the same text and bytes.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from office import Office  # noqa: E402

office = Office(__file__, "Hollin Water", (2025, 1, 7, 8, 0, 0))

office.docx("expenses-and-training-2025.docx", "Expenses and training, rules from 1 February 2025", [
    ("h1", "Expenses and training"),
    ("p", "In force from 1 February 2025. The rules of 2020 (0.30 EUR per km, hotel 85 EUR, training budget 600 EUR) end. Owner: Marguerite Loftus."),
    ("h2", "Training"),
    ("p", "Budget a year: fitters and laboratory 900 EUR, call centre and meter readers 450 EUR, offices and IT 700 EUR. Four days a year. What is not used may be carried over once. Courses are asked for on form T4, eight weeks before."),
    ("p", "The master's certificate is paid in full; whoever leaves within 24 months pays back a share for every month that is missing."),
    ("h2", "Ways and nights"),
    ("table", [["What", "At most", "Receipt"], ["Own car per km", "0.36 EUR", "no"], ["Own bicycle per km", "0.12 EUR", "no"], ["Hotel per night", "110 EUR", "yes"], ["Meals, more than 8 hours away", "14 EUR", "no"], ["Meals, whole day away", "28 EUR", "no"], ["Rubber boots, once a year", "60 EUR", "yes"]]),
    ("h2", "How to hand in"),
    ("p", "Photograph the receipt, send it with form E2 to pay@hollinwater.example within two months. Paid with the wages of the next month."),
    ("h2", "What is not paid"),
    ("li", ["Fines are not paid.", "First class is not paid.", "Minibar and alcohol are not paid.", "Taxis before 22:00 are not paid."]),
])

office.docx("contract-sludge-haulage.docx", "Contract on the haulage of sludge, Hollin Water and Dunmoor Haulage", [
    ("h1", "Contract on the haulage of sludge"),
    ("p", "Between Hollin Water, Fuller's Yard, and Dunmoor Haulage. Contract number C-2025-14. Signed on 22 April 2025."),
    ("h2", "1 Subject"),
    ("p", "Dunmoor fetches pressed sludge at Low Sike and takes it to the drying plant at Harle Quay. About 5,200 tonnes a year; the quantity is not guaranteed."),
    ("h2", "2 Term"),
    ("p", "From 1 July 2025 to 30 June 2028. It goes on for one year each time unless one side gives notice six months before the end."),
    ("h2", "3 Price"),
    ("table", [["What", "EUR", "Unit"], ["Haulage of pressed sludge", "31.40", "per tonne"], ["Extra trip on request", "95.00", "per trip"], ["Saturday trip", "140.00", "per trip"], ["Waiting at the gate after 30 minutes", "55.00", "per hour"]]),
    ("p", "The price follows the diesel index once a year, on 1 January, by at most 4 %."),
    ("h2", "4 Duties"),
    ("p", "Containers are fetched within 24 hours after the call, in frost within 36 hours. Lorries are covered and washed before they leave the gate. Dry matter at least 23 %; below that Dunmoor may refuse the load."),
    ("h2", "5 Penalty"),
    ("p", "For every day of delay 400 EUR, at most 5 % of the yearly sum. Spilled sludge is removed by Dunmoor within four hours."),
    ("h2", "6 Contact"),
    ("p", "Hollin Water: Hanneke Vos. Dunmoor: Casimir Boyle, 0555 646 330."),
])

office.xlsx("connection-charges.xlsx", [
    ("2024", [["Connection", "Up to", "EUR", "Extra metre EUR"], ["Water house DN 32", "10 m", 1980, 74], ["Water trade DN 50", "10 m", 2740, 96], ["Sewage house DN 150", "8 m", 3150, 165], ["Temporary for building site", "6 months", 540, 0]]),
    ("2025", [["Connection", "Up to", "EUR", "Extra metre EUR"], ["Water house DN 32", "10 m", 2140, 81], ["Water trade DN 50", "10 m", 2960, 104], ["Sewage house DN 150", "8 m", 3420, 178], ["Temporary for building site", "6 months", 585, 0]]),
    ("Waiting times", [["Step", "Weeks"], ["Offer after application A1", 3], ["Digging permit of the town", 5], ["Work after the permit", 4], ["Meter after the pressure test", 1]]),
    ("Stock", [["Part", "Shelf", "In stock", "Minimum"], ["Clamp 100 mm", "R4", 14, 8], ["Clamp 150 mm", "R4", 6, 8], ["Clamp 200 mm", "R5", 5, 4], ["Float switch", "E2", 3, 5], ["Meter Q3 2.5", "M1", 310, 200], ["Meter Q3 10", "M2", 7, 10]]),
])

office.xlsx("budget-2025.xlsx", [
    ("Investments", [["What", "Place", "Planned EUR", "State"], ["Float switches and floor alarms", "five stations", 7900, "ordered"], ["Filter sand, filters 1 to 4", "Brackmoor", 128000, "done in May"], ["Incubator Brutwarm 60", "laboratory", 6400, "bought"],
                     ["Solar plant on the filter hall", "Brackmoor", 265000, "put off to 2026"], ["Footbridge at the intake", "Coldmere", 38000, "refused, nature reserve"], ["Second settling tank, repair", "Low Sike", 412000, "under way until October"], ["Headsets", "call centre", 4100, "planned for June"]]),
    ("Losses", [["Zone", "2022 %", "2023 %", "2024 %", "Aim 2025 %"], ["Hollin", 11.8, 11.2, 10.4, 10.0], ["Sallan", 17.5, 18.9, 19.6, 15.0], ["Burnt Oak", 8.1, 7.7, 7.9, 7.5], ["Crow Lane", 9.4, 9.0, 8.8, 8.5], ["Eelby", 14.2, 13.0, 12.1, 11.5]]),
    ("Water pumped", [["Source", "2023 1000 m3", "2024 1000 m3"], ["Brackmoor", 8940, 9120], ["Burnt Oak wells", 3310, 3180], ["Bought from Carrick Bay", 205, 640]]),
])

office.pdf("drought-plan.pdf", "Drought plan", [
    ("p", "Edition of 1 May 2024. Owner: Rune Askeland. Read it together with the contract with Carrick Bay."),
    ("h", "Levels"),
    ("table", [["Level", "Coldmere below", "What it means for customers"], ["1", "65 %", "appeal to save water"], ["2", "50 %", "no sprinklers, no watering between 9:00 and 20:00"], ["3", "38 %", "no car washing, no filling of pools"], ["4", "25 %", "standpipes in the streets, pressure lowered at night"]]),
    ("p", "A level is left only when the reservoir has been above its mark for 14 days."),
    ("page", ""),
    ("h", "Who decides"),
    ("p", "Levels 1 and 2: Rune Askeland. Levels 3 and 4: Philippa Garrowby together with the county."),
    ("h", "Buying water"),
    ("p", "From level 2 on we may buy up to 4,000 m3 a day from Carrick Bay, at 0.94 EUR per m3. It takes 36 hours until the water arrives."),
    ("h", "Exceptions"),
    ("li", ["Hospital, dialysis, care homes", "Watering of trees planted less than three years ago, with a can", "Firms that must by law clean vehicles"]),
    ("h", "Fines"),
    ("p", "Hollin Water does not fine anybody. The county may fine up to 500 EUR from level 3 on."),
], foot="Hollin Water")

office.pptx("induction-control-room.pptx", [
    ("Control room induction", ["First Wednesday of the month", "Place: Brackmoor, room Weir", "Host: Gwen Ossory"]),
    ("The first hour", ["6:45 handover, read the black book", "Look at all five stations on the wall", "Ring the works on extension 222 as a test", "Turbidity alarm: 0.50 NTU"]),
    ("Colours on the wall", ["Green: runs", "Grey: waits", "Blue: in maintenance", "Red: alarm not confirmed", "Red flashing: nobody on the way"]),
    ("Power cut", ["Stay calm, torches in drawer 1", "Generator of Brackmoor starts by itself", "Confirm A305, wait for A306", "Ring the grid: 0555 690 077", "Write down the time"]),
    ("Talking on the radio", ["Say the station first", "No names of customers", "Repeat numbers", "End with over"]),
    ("Never", ["Never close a valve from the wall without ringing the fitter", "Never confirm an alarm of somebody else", "Never leave the room empty"]),
])
