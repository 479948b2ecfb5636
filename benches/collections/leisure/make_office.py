#!/usr/bin/env python3
"""Makes the Word, Excel, PDF and PowerPoint files of this collection: make_office.py [FOLDER]

Needs the packages listed in ../office.py; the same input gives the same text and bytes.
"""
import os
import sys

from reportlab.lib.pagesizes import A5

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from office import Office  # noqa: E402

office = Office(__file__, "Marrowby Leisure Trust", (2025, 2, 3, 9, 0, 0))

office.docx("lane-hire-agreement.docx", "Lane hire agreement for clubs", [
    ("p", "LANE HIRE AGREEMENT - model text for clubs, edition of September 2022, unchanged for 2024/25"),
    ("h", "Rates"),
    ("p", "The hirer pays 14.00 pounds per lane and hour at Kingsmere Baths and 11.00 pounds at Sallow Lane Pool. The invoice comes monthly, payable within 21 days."),
    ("table", [["Club", "Day", "Time", "Lanes"], ["Marrowby Otters", "Mon, Wed", "19:00-21:00", "4"], ["Marrowby Otters", "Sat", "06:30-08:00", "6"],
               ["Triathlon Brack", "Thu", "20:00-21:00", "3"], ["Canoe Polo", "Sun", "17:15-18:45", "whole pool"], ["Sub-aqua Group", "Fri", "20:00-21:00", "deep end"]]),
    ("h", "Supervision"),
    ("p", "Every hirer brings a coach with a rescue award of not more than two years of age. We provide one lifeguard from 20 swimmers on; below that the coach is responsible."),
    ("h", "Cancelling"),
    ("p", "Single sessions: five working days before, otherwise the full rate. The whole agreement: eight weeks to the end of a term, in writing."),
    ("h", "Equipment"),
    ("p", "The club cupboard under the gallery is shared; club 1 has the left door. Sub-aqua cylinders are not stored in the building. Canoes are rinsed outside before they go in."),
    ("h", "Insurance"),
    ("p", "Liability cover of at least 5 million pounds; a copy is handed in every September."),
])

office.xlsx("assets-and-checks.xlsx", [
    ("Checks", [["Item", "Site", "Serial", "Last check", "Next check", "Checked by", "Remark"],
                ["Pool hoist", "Kingsmere", "TL-5581", "2025-03-11", "2025-09-11", "Tolliver Lifts", "every six months"],
                ["Passenger lift", "Oxter Hall", "TL-2207", "2025-03-11", "2025-09-11", "Tolliver Lifts", ""],
                ["Inflatable Gerald", "Kingsmere", "CR-014", "2024-10-02", "2025-10-02", "Puffwell Inspection", "patch at tail Feb 2025"],
                ["AED corridor", "Kingsmere", "HB-7713", "2025-05-05", "2025-06-05", "T. Amblecote", "pads expire 2026-11, battery 2027-03"],
                ["AED reception", "Kingsmere", "HB-7714", "2025-05-05", "2025-06-05", "T. Amblecote", "pads expire 2025-08"],
                ["AED", "Halden Lido", "HB-6120", "2025-05-14", "2025-06-14", "E. Marne", ""],
                ["Starting blocks 1-6", "Kingsmere", "-", "2025-02-20", "2026-02-20", "D. Wasz", "block 4 retightened"],
                ["Ice resurfacer", "Brack Point Rink", "ER-903", "2024-09-17", "2025-07-21", "maker", "together with ice plant service"]]),
    ("Small works 2025", [["Line", "Budget", "Spent to May", "Left"], ["Kingsmere hall and village", 12000, 7500, 4500], ["Sallow Lane floor", 9200, 3100, 6100],
                          ["Oxter gutter", 7000, 7300, -300], ["Rink LED lights", 5600, 0, 5600], ["Lido kiosk fit-out", 18500, 16940, 1560]]),
])

office.pdf("lido-leaflet-2025.pdf", "Halden Lido - Summer 2025", [
    ("p", "Fifty metres of cold clear water since 1936. Open daily from 17 May to 14 September, 10.00 to 19.30."),
    ("h", "Tickets"),
    ("p", "Single tickets as on the board. Season ticket: adult 98 pounds, junior 52, household 210; with photo. Before 30 April each is 10 pounds cheaper. Evening ticket from 17.30: 4 pounds."),
    ("h", "Weather"),
    ("p", "We open in rain. In a thunderstorm everybody leaves the water at the first thunder and waits for 30 minutes after the last. There are no refunds for the weather, but if we close for more than two hours you get a ticket for another day."),
    ("page", ""),
    ("h", "On the lawn"),
    ("p", "No glass, no barbecues, no loudspeakers. Dogs are welcome on one day only: the dog swim on the day after the season, Monday 15 September, 10.00 to 16.00, 5 pounds a dog."),
    ("table", [["What", "When", "Where"], ["Cold dip group", "Sundays 9.00", "steps at the south end"], ["Floodlit swim", "27 June, 25 July, 29 August, until 23.00", "whole pool"], ["Toddler paddling", "daily", "fountain pool, 30 cm"], ["Kiosk", "11.00 to 18.30", "by the gate"]]),
    ("h", "Getting here"),
    ("p", "Bus 14 stops at the gate. Field car park 3 pounds a day, bicycles free."),
], rule=("LINEBELOW", 0.5, "#888888"), heading="Heading3", pagesize=A5, leftMargin=40, rightMargin=40)

office.pptx("induction-lifeguards.pptx", [
    ("Your first day as a lifeguard", ["With Theo Amblecote, Kingsmere gallery, 08:30", "Bring: award card, bank details, swim kit", "Shift partner for the first three shifts"]),
    ("Arm signals on poolside", ["One arm up: I need a relief", "Both arms up: send help", "Arms crossed above the head: pool is full", "Hand flat on the head: OK"]),
    ("What gets you into trouble", ["Phone on the chair", "Leaving the chair without handover", "Telling a customer 'it is policy' without saying why"]),
    ("Where things are", ["Throw bags: every second pillar", "Foil blankets: yellow boxes at exits 2 and 5", "Spare whistle: desk drawer", "Dry gloves: first-aid room, top shelf"]),
])
