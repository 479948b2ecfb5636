//! Terms of a text: analysed words, days and weekdays.

use std::collections::BTreeSet;

use crate::text::sentences::sentences;
use crate::text::values::{days, weekdays};
use crate::text::words::{entries, matter};
use lodestone_text::HybridQuery;

/// Words that say little about the subject of a question. A passage that answers often uses other
/// words in their place, so their rarity says nothing.
pub(crate) const COMMON: &str = "\
    I|I'm|I've|I'd|I'll|he|she|him|his|her|hers|it's|they|them|their|they're|we|we're|us|our|ours|\
    you|you're|your|mine|one|ones|someone|somebody|anyone|anybody|everyone|everybody|something|\
    anything|everything|nothing|thing|things|people|person|there|here|this|that|these|those|other|\
    others|another|same|such|some|any|all|each|every|both|few|more|most|less|least|very|just|\
    only|also|even|still|yet|again|ever|always|often|now|then|than|so|too|as|if|because|while|\
    until|till|after|before|during|from|up|down|off|out|over|under|into|onto|about|around|with|\
    without|within|between|against|through|not|no|nor|don't|doesn't|didn't|can't|cannot|won't|\
    isn't|aren't|may|might|must|shall|will|would|need|needs|want|wants|wanted|get|gets|got|\
    getting|give|gives|given|go|goes|going|gone|went|come|comes|came|make|makes|made|put|puts|take|\
    takes|taken|took|keep|keeps|kept|let|lets|say|says|said|tell|tells|told|ask|asks|asked|know|\
    knows|known|think|see|sees|seen|look|looks|find|finds|happen|happens|happened|use|used|have|\
    mean|means|meant|meaning|definition|define|stand|stands|called|\
    handle|handles|handled|deal|dealt|proceed|coming|doing|done|details|info|information|usually|\
    normally|generally|supposed|able|possible|\
    exactly|actually|currently|allowed|way|lot|kind|bit|moment|the|a|of|to|on|at|by|for|\
    ab|an|auf|aus|bei|bis|das|dem|den|der|des|die|ein|eine|einem|einen|einer|es|für|gibt|hat|ich|\
    im|in|ist|man|mein|mich|mir|mit|muss|nach|noch|oder|ob|sich|sie|sind|um|und|uns|vom|von|vor|\
    wenn|werden|wir|wird|zu|zum|zur|\
    au|aux|avec|ce|ces|cette|dans|de|des|du|elle|en|est|et|il|je|la|le|les|mon|ne|nous|on|ou|par|\
    pas|peut|pour|sa|se|ses|son|sont|sur|un|une|vous|\
    al|con|del|el|ella|es|está|hay|la|las|lo|los|me|mi|no|nos|para|por|se|si|sin|sobre|son|su|sus|\
    un|una|uno|y";
/// Whether a lower-case word says little about the subject of a text.
pub(crate) fn is_common(word: &str) -> bool {
    entries(COMMON).any(|other| other == word)
}

/// The analysed terms of a text, and the days in it. A query keeps at most 256 terms, so the text
/// is analysed sentence by sentence.
pub(crate) fn terms(text: &str) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for line in sentences(text) {
        set.extend(HybridQuery::analyse(&text[line.bytes]).terms().iter().cloned());
    }
    set.extend(days(text).into_iter().flat_map(|(_, day)| day.terms()));
    set.extend(weekdays(text));
    set
}

/// The terms of a question without its question words, for snippets and highlights.
pub fn question_terms(question: &str) -> HybridQuery {
    HybridQuery::analyse(&matter(question))
}
