#!/usr/bin/env python3
"""Makes the Word, Excel, PDF and PowerPoint files of this collection: make_office.py [FOLDER]

Needs the packages listed in ../office.py; the same input gives the same text and bytes.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from office import Office  # noqa: E402

office = Office(__file__, "Quillbrook Housing Co-operative", (2025, 1, 6, 8, 0, 0))

office.docx("expenses-2025.docx", "Expenses, rules from 1 March 2025", [
    ("h1", "Expenses"),
    ("p", "Works agreement of 11 February 2025, in force from 1 March 2025. The instruction of 2021 (0.30 EUR per km, form R2) ends. Owner: Ruth Achterberg."),
    ("h2", "Ways"),
    ("p", "Own car 0.36 EUR per km if no co-op vehicle is free. Own bicycle 0.12 EUR per km. Ways between estates count, the way to work does not. Taxi only with reason."),
    ("table", [["What", "At most", "Receipt"], ["Hotel per night", "118 EUR", "yes"], ["Hotel at a fair", "165 EUR", "yes"], ["Lunch on courses over six hours", "14 EUR", "no"], ["Work phone used privately abroad", "not paid", "-"]]),
    ("h2", "How to hand in"),
    ("p", "Scan the receipt with the Fob app within eight weeks; form R2 is no longer taken. Up to 80 EUR your lead approves, above that finance. Money comes with the next pay."),
    ("li", ["Fines are never paid.", "Upgrades of seats are never paid.", "Drinks at the bar are never paid."]),
])

office.xlsx("budget-2026-draft.xlsx", [
    ("Maintenance", [["Estate", "Actual 2024 EUR", "Budget 2025 EUR", "Plan 2026 EUR", "Main item 2026"],
                ["Fennel Row", 412700, 690000, 355000, "stair windows"], ["Glasshouse Yard", 187300, 205000, 241000, "garage membrane"],
                ["Ostler's Mead", 266900, 280000, 398000, "solar roof"], ["Pinfold Court", 41200, 45000, 52000, "facade oil"],
                ["Tallow Bank", 219400, 230000, 226000, "attic insulation"], ["Winnock Towers", 583100, 560000, 912000, "lift tower 2"]]),
    ("Projects", [["Project", "Estate", "Begin", "End", "EUR", "Lead", "State"],
                  ["Lift tower 2", "Winnock Towers", "2026-07-06", "2026-08-28", 309400, "Bettina Szarka", "awarded"],
                  ["Solar roof 74 kW", "Ostler's Mead", "2026-03-16", "2026-06-12", 121500, "Torvald Quist", "adopted"],
                  ["Laundry by app", "Winnock Towers", "2025-09-01", "2026-02-28", 8700, "Pim Vandersloot", "trial"],
                  ["Attic insulation", "Tallow Bank", "2026-04-13", "2026-10-02", 164000, "Torvald Quist", "planned"],
                  ["Roof terrace", "Winnock Towers", "", "", 73000, "Torvald Quist", "refused, load too high"],
                  ["Car sharing", "Glasshouse Yard", "", "", 12000, "Fenna Oosting", "on hold until 2027"]]),
])

office.pdf("fire-leaflet-members.pdf", "What to do when it burns", [
    ("p", "Leaflet for all members. Printed June 2025."),
    ("h", "Fire in your flat"),
    ("li", ["Get everybody out", "Shut the flat door behind you", "Take the key with you", "Ring 112 from outside", "Wait at the assembly point for the fire brigade"]),
    ("h", "A pan burns"),
    ("p", "Never use water. Put the lid on, switch off, leave the lid on for half an hour."),
    ("page", ""),
    ("h", "Smoke alarm"),
    ("p", "It peeps once a minute: battery weak, ring Sentinox. It howls because of cooking: air the room towards the window, never towards the stairs."),
    ("table", [["Extinguisher", "Good for", "Where"], ["Foam", "wood, paper, liquids", "stairs of Winnock and Pinfold"], ["Carbon dioxide", "electrical plant", "lift machine rooms"], ["Fat fire", "deep fryers", "common rooms"]]),
    ("h", "People who cannot use the stairs"),
    ("p", "Tell us, we pass your flat to the fire brigade on list H. The data is renewed every January and deleted when you ask."),
], foot="Quillbrook Housing Co-operative", author="Quillbrook")

office.pptx("caretaker-induction.pptx", [
    ("Caretaker induction", ["Two days, every first Tuesday in March and September", "Place: workshop Tallow Bank", "Host: Torvald Quist"]),
    ("The weekly round", ["Monday: refuse rooms and lamps", "Tuesday: plant room, pressure between 1.2 and 1.8 bar", "Wednesday: roof and gutters from below", "Thursday: playground, sand and screws", "Friday: write the week up"]),
    ("Snow and ice", ["Cleared by 6:30, on Sundays by 8:00", "Grit before salt; salt only on steps", "Width 1.20 m", "Write the time into the winter book"]),
    ("Never", ["Never open a meter cabinet seal", "Never take money from tenants", "Never climb on a balcony railing"]),
])
