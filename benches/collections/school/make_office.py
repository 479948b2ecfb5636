#!/usr/bin/env python3
"""Makes the Word, Excel, PDF and PowerPoint files of this collection: make_office.py [FOLDER]

Needs ../office.py (or its folder in PYTHONPATH) and the packages listed there.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from office import Office  # noqa: E402

office = Office(__file__, "Thornacre School", (2026, 1, 9, 8, 0, 0))

office.docx("minibus-rules.docx", "School minibuses: rules for drivers", [
    ("h1", "School minibuses: rules for drivers"),
    ("p", "In force from 1 September 2025. Dilys Marsh, transport coordinator, extension 18. Replaces the leaflet of 2021, in which drivers of 21 years and a speed of 62 mph were still allowed."),
    ("h2", "Who may drive"),
    ("p", "Drivers must be at least 25 years old, have held a full licence for three years, have no more than three penalty points and have passed our own driving test with Dilys Marsh. The permit is valid for four years. A new medical is needed at 60 and then every two years. Parents and sixth formers never drive."),
    ("h2", "Buses"),
    ("table", [["Bus", "Registration", "Seats with driver", "Fuel", "Next inspection"], ["1", "TA53 KLM", "17", "diesel", "14 April 2026"], ["2", "TA19 RVO", "17", "diesel", "2 June 2026"], ["3", "TA24 FEL", "9", "petrol", "21 September 2026"]]),
    ("p", "Bus 3 belongs to Fell House and is booked with Ottoline Reeve; buses 1 and 2 are booked in Cubby. Bus 1 has the wheelchair lift."),
    ("h2", "Before you drive off"),
    ("li", ["Fetch the key and the blue folder from reception and sign.", "Walk round the bus: tyres, lights, mirrors, damage.", "Check the fire extinguisher and first aid kit.", "Write down the kilometres.", "Seat belts on, bags out of the aisle, back door unlocked.", "List of passengers: one copy in the bus, one at reception."]),
    ("h2", "On the road"),
    ("p", "Highest speed 55 mph on motorways, 50 mph elsewhere where allowed. No more than two hours at the wheel without a break of 15 minutes; more than 120 miles a day need a second driver. A second adult comes along when pupils of years 7 and 8 are on board. No food except water. No phone, not even hands-free."),
    ("h2", "Breakdown or accident"),
    ("p", "Motorway: everybody out on the left, behind the barrier, belt cutters are above the driver's seat. Ring the breakdown service 01632 960 845, membership 55-2081-T, then reception. After an accident take photographs, exchange names, admit nothing, and tell Dilys Marsh the same day. The first £300 of a damage are borne by the insurance account, not by the driver, unless alcohol or a phone was involved."),
    ("h2", "Afterwards"),
    ("p", "Refuel when the tank is below half, with the card in the folder (its number code is with reception). Sweep. Enter defects in the log; a defect of brakes, tyres, lights or belts takes the bus off the road until Dilys signs. Parking is beside the tractor shed, bus 3 at Fell House. A dirty bus costs the department £20."),
    ("h2", "Charging to departments"),
    ("p", "Departments are charged 48p a kilometre, fuel included. Clubs of the Parents' Association pay 65p."),
])

office.docx("contract-copiers.docx", "Agreement on copiers and printers, Thornacre School and Paxleaf Office", [
    ("h1", "Agreement on copiers and printers"),
    ("p", "Between Thornacre School, Beck Lane, Marrick, and Paxleaf Office Ltd. Agreement PX-7730. Signed on 4 July 2024 by Gwendoline Farrer."),
    ("h2", "1. Machines"),
    ("p", "Eleven machines: four Orla 450 for A3 and colour, six Orla 280 for A4, one Orla 900 in the print room. They remain the property of Paxleaf."),
    ("h2", "2. Term"),
    ("p", "Forty-eight months from 1 August 2024, that is until 31 July 2028. Without notice of three months it continues from year to year."),
    ("h2", "3. Charges"),
    ("table", [["Item", "Charge"], ["Rent of all machines", "£642 a quarter"], ["Black and white page", "0.38p"], ["Colour page", "3.1p"], ["Pages included per quarter", "90,000 black and white"], ["Moving a machine", "£85"], ["Staples", "free"]]),
    ("p", "Toner and parts are included, paper is not. Charges rise by no more than 3 % a year, for the first time on 1 August 2026."),
    ("h2", "4. Service"),
    ("p", "A technician is on site within six working hours. For the Orla 900 in the months of May and June within three working hours. If a machine stands still longer than two working days Paxleaf brings another of the same size. Helpline 01632 960 650."),
    ("h2", "5. Data"),
    ("p", "Hard disks are wiped with a certificate before a machine leaves the school. Scanned pages aren't stored for more than 24 hours."),
    ("h2", "6. Ending early"),
    ("p", "If the school ends the agreement early it pays 60 % of the remaining rent. Paxleaf may end it if invoices are unpaid for more than 60 days."),
])

office.xlsx("exam-fees-2025-26.xlsx", [
    ("Entry fees", [["Level", "Subject", "Fee £", "Late fee £", "Double late £"], ["GCSE", "most subjects", 47.5, 71.25, 95], ["GCSE", "Art and Design", 53.2, 79.8, 106.4], ["GCSE", "Computer Science", 49.9, 74.85, 99.8], ["A level", "most subjects", 118, 177, 236], ["A level", "Psychology", 112.4, 168.6, 224.8], ["A level", "Music", 131.6, 197.4, 263.2], ["Project", "Extended Project", 64, 96, 128]]),
    ("After results", [["Service", "GCSE £", "A level £", "Days"], ["Clerical re-check", 9.6, 10.8, 10], ["Review of marking", 43.7, 52.9, 20], ["Priority review of marking", "not offered", 63.5, 15], ["Copy of script", 12.5, 14.9, 15], ["Replacement certificate", 48, 48, 30]]),
    ("Private candidates", [["What", "£"], ["Administration per series", 65], ["Room and invigilation per paper", 38], ["Own room for access arrangements per paper", 84]]),
    ("Seats", [["Room", "Desks", "Clock", "Deaf loop"], ["Sports Hall", 130, "yes", "no"], ["Drama Studio", 28, "yes", "yes"], ["Room 204", 18, "no, bring one", "no"], ["Library", 24, "yes", "yes"], ["Old Hall 009", 6, "yes", "no"]]),
])

office.xlsx("department-budgets-2025-26.xlsx", [
    ("Budgets", [["Department", "Head", "Budget £", "Spent to 28 Feb £", "Remarks"], ["English", "Philomena Grant", 6200, 4110, ""], ["Mathematics", "Stellan Burke", 4800, 2350, ""], ["Science", "Rosalind Achebe", 14500, 12980, "goggles replaced"], ["Languages", "Agatha Pym", 3900, 2675, ""], ["PE", "Ivan Osgood", 8700, 9140, "overspent, mats"], ["Music", "Mei-Lin Farrow", 5600, 3020, ""], ["Art", "Rufus Adeyemi", 6900, 5015, ""], ["Library", "Araminta Cole", 7400, 4890, "of which e-books 1100"], ["Learning support", "Tobias Wrenfield", 5200, 2240, ""]]),
    ("Projects", [["Project", "Planned £", "State"], ["Rewiring Old Hall", 186000, "summer 2026"], ["Sports Hall floor, court 3", 27500, "August 2026"], ["Lift for Old Hall", 240000, "refused by the governors, listed building"], ["Washing machine Fell House", 2150, "ordered"], ["Dishwasher kitchen", 18900, "installed October 2025"], ["Solar panels Science Block", 92000, "put off until 2028"]]),
])

office.pdf("fire-and-lockdown-plan.pdf", "Fire and lockdown plan", [
    ("p", "Edition 7, September 2025. Responsible: Horace Tindle. One copy hangs in each staff room; the fire brigade has one in the red box at the main gate."),
    ("h", "1. When you find a fire"),
    ("li", ["Break the glass of the nearest call point.", "Leave the room with everybody, shut doors and windows, leave bags.", "Use the extinguisher only if the fire is smaller than a waste bin and the way out is behind you.", "Go to the meeting point; don't use the lift.", "Register by forms, in alphabetical order and silence.", "Missing persons are reported to the person in the orange tabard."]),
    ("h", "2. Fire marshals"),
    ("table", [["Building", "Marshal", "Deputy"], ["Old Hall ground floor", "Cosmo Delaney", "Lorna Keddie"], ["Old Hall first floor", "Araminta Cole", "Verity Langham-Poe"], ["Science Block", "Zdenka Hruska", "Blessing Okoro"], ["Sports Hall", "Ivan Osgood", "Rufus Adeyemi"], ["Kitchen and dining hall", "Fausta Lombardi", "Perpetua Nuttall"], ["Fell House", "Ottoline Reeve", "Hester Quill"]]),
    ("h", "3. Extinguishers"),
    ("p", "Red band: water, for paper and wood. Black: carbon dioxide, for electrical things. Yellow: wet chemical, only in the kitchen for hot fat. Blue: powder, in the boiler house and the tractor shed. They are serviced every March by Firmin and Son."),
    ("page", ""),
    ("h", "4. Personal evacuation plans"),
    ("p", "Pupils and staff who cannot use stairs have a personal plan. Evacuation chairs hang at the top of the east stairs in Old Hall and beside S20. Eleven members of staff have been trained; the list is at reception. The refuge with intercom is on the first floor landing of the Science Block."),
    ("h", "5. Lockdown"),
    ("p", "Signal: five short tones and one long, repeated. Stay in or go into the nearest room, lock or block the door, blinds down, lights off, away from the windows, phones silent, under the tables. Nobody opens the door for anybody, not for a fire alarm either unless you see or smell smoke. The all-clear is given by handbell and in person, never by tannoy."),
    ("p", "Who is on the fields goes to the cricket pavilion, not back to the buildings. Practice once a year in February."),
    ("h", "6. Bomb threat by telephone"),
    ("p", "Keep the caller talking, press the red key on the reception phone to record, use the question card under the phone. Tell the Head. Don't use radios or mobile phones within 15 metres of a suspicious thing."),
    ("h", "7. Gas and chemicals"),
    ("p", "The main gas valve of the Science Block is in the cupboard beside S01; the key is in the break-glass box. For spilled mercury close the room and ring Zdenka Hruska."),
])

office.pptx("invigilator-training.pptx", [
    ("Invigilator training, 28 April 2026", ["14:00, library", "Verity Langham-Poe", "Tea from 13:45"]),
    ("Before the start", ["Arrive 40 minutes before", "Sign for the phone of the exams office (red)", "Check seating plan against faces and candidate cards", "Read the notice aloud, word for word, page 3"]),
    ("Signals", ["Green card up: I need a toilet escort", "Yellow card: please fetch paper", "Red card: come at once, something is wrong", "Never call across the room"]),
    ("Toilet breaks", ["Not in the first 30 minutes and not in the last 15", "One at a time, always with an escort of the same sex", "Write down out and in", "The escort checks the cubicle before"]),
    ("Supervising the end", ["Tell the candidates when five minutes are left", "Don't tell them at ten minutes", "Nobody leaves early from papers under 60 minutes", "Collect in candidate number order"]),
    ("Pay", ["Time sheets to Lorna Keddie by the 12th", "Half an hour is paid for reading in"]),
])
