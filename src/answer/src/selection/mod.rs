//! Selection: turns scored passages into the passages of an answer.
//!
//! - `actions`: the actions agreed at a meeting, from the table in its minutes
//! - `beside`: sentences beside a passage that belong to it
//! - `cases`: items of a list on one thing in several cases
//! - `causes`: passages that tell why something happened
//! - `chains`: sentences on whom to turn to next
//! - `changes`: the section of an edition that tells what is new
//! - `choose`: the entry point, for whole lists, meant rows and up to three sentences
//! - `columns`: the columns in which a question means a name
//! - `computed`: rows picked by computation
//! - `conflicts`: passages that contradict each other
//! - `corrections`: later messages, minutes and addenda that put a passage right
//! - `decisions`: the decisions recorded in minutes
//! - `deeds`: the measures of a report
//! - `divided`: the part of a table that a question names
//! - `foreign`: passages in other languages, rendered in words of the question's language
//! - `headed`: whole lists found by the headings above them
//! - `identified`: the row that a question identifies by a code or a name
//! - `kinds`: the table of the kind of things that is meant
//! - `legends`: entries that say what a sign means
//! - `occasions`: the part of a paragraph about the occasion that is asked about
//! - `opinions`: a second passage if the reader and the words disagree
//! - `payers`: the sentence that says who bears a cost
//! - `placed`: the sentence that names the place meant by "there"
//! - `reasons`: sentences that tell the cause of what another one says
//! - `refused`: what a text leaves out, refuses or forbids
//! - `replies`: the replies to a message of a chat
//! - `rows`: the rows that a question means
//! - `sides`: the two sides of a comparison
//! - `steps`: the row of a table by bounds that a number means
//! - `sure`: the first passage if its confidence suffices, or a substitute
//! - `today`: rows of a day named relative to today
//! - `topics`: what is said below the heading that a question names
//! - `troubles`: the list below a heading that states the trouble
//! - `unfinished`: rows that state that they are unfinished
//! - `votes`: the list of what was voted on
//! - `weekdays`: the item of the weekday asked for

pub(crate) mod actions;
pub(crate) mod beside;
pub(crate) mod cases;
pub(crate) mod causes;
pub(crate) mod chains;
pub(crate) mod changes;
pub(crate) mod choose;
pub(crate) mod columns;
pub(crate) mod computed;
pub(crate) mod conflicts;
pub(crate) mod corrections;
pub(crate) mod decisions;
pub(crate) mod deeds;
pub(crate) mod divided;
pub(crate) mod foreign;
pub(crate) mod headed;
pub(crate) mod identified;
pub(crate) mod kinds;
pub(crate) mod legends;
pub(crate) mod occasions;
pub(crate) mod opinions;
pub(crate) mod payers;
pub(crate) mod placed;
pub(crate) mod reasons;
pub(crate) mod refused;
pub(crate) mod replies;
pub(crate) mod rows;
pub(crate) mod sides;
pub(crate) mod steps;
pub(crate) mod sure;
pub(crate) mod today;
pub(crate) mod topics;
pub(crate) mod troubles;
pub(crate) mod unfinished;
pub(crate) mod votes;
pub(crate) mod weekdays;
