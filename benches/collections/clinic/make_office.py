#!/usr/bin/env python3
"""Makes the Word, Excel, PDF and PowerPoint files of this collection: make_office.py [FOLDER]

Needs the packages listed in ../office.py; the same input gives the same text and bytes.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from office import Office  # noqa: E402

office = Office(__file__, "Fernhollow Vets", (2025, 1, 6, 8, 0, 0))

office.docx("training-and-expenses-2025.docx", "Training and expenses, rules from 1 March 2025", [
    ("h1", "Training and expenses"),
    ("p", "In force from 1 March 2025. The rules of 2021 (0.28 EUR per km, training budget 500 EUR) end. Owner: Lucinda Marchetti."),
    ("h2", "Training"),
    ("p", "Budget a year: vets 1,400 EUR, nurses 650 EUR, reception and kennel 300 EUR. Training days: vets five, everybody else three. Budgets may not be carried over. Courses are asked for on form T1 six weeks before."),
    ("p", "Whoever leaves within twelve months after a course above 800 EUR pays half of it back."),
    ("h2", "Ways and nights"),
    ("table", [["What", "At most", "Receipt"], ["Own car per km", "0.34 EUR", "no"], ["Own bicycle per km", "0.10 EUR", "no"], ["Hotel per night", "105 EUR", "yes"], ["Hotel at the congress", "150 EUR", "yes"], ["Meals, whole day away", "24 EUR", "no"]]),
    ("h2", "How to hand in"),
    ("p", "Photograph the receipt, send it to Horace Blyth with the form X2 within six weeks. Money comes with the next pay."),
    ("li", ["Parking fines are not paid.", "First class is not paid.", "Alcohol is not paid."]),
])

office.xlsx("kennel-prices.xlsx", [
    ("2024", [["Animal", "Per night EUR", "Remark"], ["Dog small up to 10 kg", 26.00, ""], ["Dog medium up to 25 kg", 30.00, ""], ["Dog large", 34.00, ""],
              ["Cat", 19.00, ""], ["Second animal in the same run", 15.00, ""], ["Rabbit or guinea pig", 9.00, "per hutch"]]),
    ("2025", [["Animal", "Per night EUR", "Remark"], ["Dog small up to 10 kg", 28.50, ""], ["Dog medium up to 25 kg", 33.00, ""], ["Dog large", 37.50, ""],
              ["Cat", 21.00, ""], ["Second animal in the same run", 17.00, ""], ["Rabbit or guinea pig", 10.50, "per hutch"]]),
    ("Extras 2025", [["Extra", "EUR", "Unit"], ["Giving medicine", 3.50, "per day"], ["Insulin injection", 5.00, "each"], ["Single walk 30 minutes", 9.00, "each"],
                     ["Bath before going home", 24.00, "each"], ["Photo message", 1.50, "each"], ["Heated run", 4.00, "per night"], ["Christmas and Easter surcharge", 8.00, "per night"]]),
    ("Occupancy", [["Month", "Dogs average", "Cats average"], ["January 2025", 11, 5], ["February 2025", 14, 6], ["March 2025", 17, 7], ["April 2025", 29, 15], ["May 2025", 22, 12]]),
])

office.xlsx("budget-2025.xlsx", [
    ("Investments", [["What", "Place", "Planned EUR", "State"], ["Ultrasound Sonavet S3", "Crane Hill", 18400, "bought"], ["Vaccine fridge Coldmark 200", "Crane Hill", 1950, "ordered"],
                     ["Floor heating 8 more runs", "Sallow Farm", 14200, "put off to 2026"], ["Dental X-ray", "Oxbow Quay", 9800, "planned for October"],
                     ["Hydrotherapy pool", "Sallow Farm", 47000, "refused, ground too wet"], ["New telephone system", "all", 11300, "planned for August"]]),
    ("Takings", [["Place", "2023 EUR", "2024 EUR", "Plan 2025 EUR"], ["Marlpit Lane", 1284000, 1341000, 1420000], ["Oxbow Quay", 733000, 801000, 865000], ["Crane Hill", 512000, 498000, 530000], ["Sallow Farm", 287000, 309000, 335000]]),
])

office.pdf("after-surgery-leaflet.pdf", "After the operation", [
    ("p", "Leaflet for owners. Printed February 2025."),
    ("h", "The first evening"),
    ("p", "Your animal may be sleepy until the next morning. Offer water two hours after you are home, a small meal in the evening. Do not leave it alone."),
    ("h", "The wound"),
    ("li", ["Look at the wound every morning and evening", "Keep it dry: no bath, no rain coat of plastic", "Leave the collar or the body on, day and night", "No ointment, no powder", "Come for the check on day 3"]),
    ("page", ""),
    ("h", "Ring us when"),
    ("table", [["What you see", "How soon"], ["Bleeding that does not stop in ten minutes", "at once"], ["Pale gums", "at once"], ["Stitches bitten out", "the same day"], ["No appetite for more than 24 hours", "the same day"], ["Slight swelling on day 2", "normal, watch it"]]),
    ("h", "Lead and stairs"),
    ("p", "Dogs: on the lead for 12 days, no jumping into the car. After bone surgery six weeks. Cats: indoors for 12 days."),
    ("h", "Pain killers"),
    ("p", "Give Meloflex with food, once a day. Never give human pain killers: one tablet of paracetamol can kill a cat."),
], foot="Fernhollow Vets")

office.pptx("nurse-induction.pptx", [
    ("Nurse induction", ["Every first Monday of the quarter", "Place: Marlpit Lane, theatre 1", "Host: Wenna Tregarth"]),
    ("Your first morning", ["7:45 handover at the whiteboard", "Read the yellow sheet of the night", "Control on the Hemora before 8:15", "Fridge log: alarm at 10 \u00b0C"]),
    ("Colours", ["Yellow: isolation", "Green: theatre", "Red: nil by mouth", "White: waste of the household"]),
    ("Hands", ["30 seconds with Sanoderm between patients", "No rings, no watches, nails short", "Gloves do not replace it"]),
    ("Cardiac arrest", ["Call for help, note the time", "Compressions 100 to 120 a minute", "Change every two minutes", "Crash trolley: theatre 1, red lid", "One person writes"]),
    ("Never", ["Never a cat bath without towel", "Never leave an animal on the table alone", "Never put caps back on needles"]),
])
