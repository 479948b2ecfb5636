//! The fonts of a document: character mapping, widths, weight and height.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded};
use hayro_font::{CMapResolverFn, FontCache, FontGlyph, FontQuery, FontResolverFn, StandardFont};
use hayro_syntax::object::dict::keys::{
    ASCENT, BASE_FONT, CIDSYSTEMINFO, DESCENDANT_FONTS, DESCENT, ENCODING, FLAGS, FONT_DESC,
    FONT_WEIGHT, ORDERING, REGISTRY, STEM_V, TO_UNICODE,
};
use hayro_syntax::object::{Array, Dict, Name, Object, String as Bytes};
use skrifa::{FontRef, MetadataProvider};

/// Font flag: letters are drawn bold.
const FORCE_BOLD: u32 = 1 << 18;
/// Minimum weight of a bold font.
const BOLD_WEIGHT: f32 = 600.0;
/// Stem width above which a font is bold, in thousandths of an em.
const BOLD_STEM: f32 = 110.0;
/// Names of bold fonts contain one of these.
const BOLD_NAMES: [&str; 6] = ["bold", "black", "heavy", "-medi", "cmbx", "demi"];
/// Name parts of fonts that are not bold, regardless of stem width.
const PLAIN_NAMES: [&str; 3] = ["medium", "light", "thin"];
/// Names of monospaced fonts contain one of these.
const MONO_NAMES: [&str; 7] = ["courier", "mono", "consol", "typewriter", "cmtt", "menlo", "sftt"];
/// Default ascent and descent, in em, for fonts that state none.
const HEIGHT: (f32, f32) = (0.95, 0.35);
/// Ascent and descent of the standard fonts, by the start of their names.
const STANDARD_HEIGHTS: [(&str, (f32, f32)); 5] = [
    ("Courier", (0.629, 0.157)),
    ("Helvetica", (0.718, 0.207)),
    ("Times-", (0.683, 0.217)),
    ("Symbol", (1.010, 0.293)),
    ("ZapfDingbats", (0.820, 0.143)),
];
/// Maximum characters per code; a font that states more is damaged.
const CHARS_MAX: usize = 8;

/// Style of a font, shared by all fonts with its name.
#[derive(Debug, Clone, Default)]
pub(super) struct Face {
    pub is_bold: bool,
    is_mono_by_name: bool,
    /// Minimum and maximum letter width, in font units.
    widths: Option<(f32, f32)>,
    /// Whether a narrow and a wide letter have been seen.
    kinds: (bool, bool),
}

impl Face {
    /// Whether the font is monospaced.
    pub(super) fn is_mono(&self) -> bool {
        let is_even = self.widths.is_some_and(|(least, most)| most - least < 0.01 * most);
        self.is_mono_by_name || (is_even && self.kinds == (true, true))
    }

    /// Records a letter and its width, in font units.
    pub(super) fn see(&mut self, c: char, width: f32) {
        if !c.is_ascii_alphabetic() || width <= 0.0 {
            return;
        }
        let (least, most) = self.widths.unwrap_or((width, width));
        self.widths = Some((least.min(width), most.max(width)));
        self.kinds.0 |= matches!(c, 'i' | 'l' | 'j' | 't' | 'f' | 'r');
        self.kinds.1 |= matches!(c, 'm' | 'w' | 'M' | 'W' | 'o' | 'n');
    }
}

/// A font that can be used for text.
#[derive(Debug)]
pub(super) struct Font<'a> {
    pub codes: hayro_font::Font<'a>,
    fallback: Fallback,
    /// Index for [`Fonts::face`].
    pub face: u16,
    /// Ascent and descent, in em.
    pub height: (f32, f32),
}

/// The mapping for codes that the font does not map to characters.
#[derive(Debug)]
enum Fallback {
    /// The code is the character.
    Code,
    /// An East Asian character collection: codes to CIDs, and CIDs to characters.
    Collection(Box<[CMap; 2]>),
    /// The table of the embedded font program: glyphs to characters.
    Program(HashMap<u32, char>),
}

impl Font<'_> {
    /// Appends the characters of a code in reading order; none if they are unknown.
    pub(super) fn push_chars(&self, code: u32, chars: &mut Vec<char>) {
        let glyph = self.codes.map_code(code);
        let text = match self.codes.glyph(glyph, code) {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        let text = text.or_else(|| match &self.fallback {
            Fallback::Code => char::from_u32(code).map(BfString::Char),
            Fallback::Program(chars) => chars.get(&glyph.to_u32()).copied().map(BfString::Char),
            Fallback::Collection(tables) => {
                let [numbers, chars] = &**tables;
                let number = (1..=4).find_map(|bytes| numbers.lookup_cid_code(code, bytes))?;
                chars.lookup_bf_string(number)
            }
        });
        match text {
            None => {}
            Some(BfString::Char(c)) => chars.push(c),
            Some(BfString::String(text)) if text.chars().count() <= CHARS_MAX => {
                chars.extend(text.chars());
            }
            Some(BfString::String(text)) => chars.extend(text.chars().next()),
        }
    }
}

/// The fonts of a document, each loaded once.
pub(super) struct Fonts<'a> {
    cache: FontCache<'a>,
    programs: FontResolverFn,
    maps: CMapResolverFn,
    loaded: HashMap<&'a [u8], Option<Rc<Font<'a>>>>,
    faces: Vec<Face>,
    numbers: HashMap<String, u16>,
}

impl<'a> Fonts<'a> {
    pub(super) fn new() -> Self {
        Self {
            cache: FontCache::new(),
            programs: Arc::new(|query| {
                Some(match query {
                    FontQuery::Standard(font) => font.get_font_data(),
                    FontQuery::Fallback(query) => query.pick_standard_font().get_font_data(),
                })
            }),
            maps: Arc::new(load_embedded),
            loaded: HashMap::new(),
            faces: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// The style of the fonts with this index.
    pub(super) fn face(&self, number: u16) -> &Face {
        &self.faces[usize::from(number)]
    }

    /// See [`Self::face`].
    pub(super) fn face_mut(&mut self, number: u16) -> &mut Face {
        &mut self.faces[usize::from(number)]
    }

    /// The font described by a dictionary, or Helvetica if there is none; `None` if its codes
    /// cannot be decoded.
    pub(super) fn load(&mut self, dict: Option<Dict<'a>>) -> Option<Rc<Font<'a>>> {
        let Some(dict) = dict else {
            let codes = self.cache.standard_font(StandardFont::Helvetica, &self.programs)?;
            return Some(Rc::new(self.font(codes, &Dict::empty())));
        };
        if let Some(font) = self.loaded.get(dict.data()) {
            return font.clone();
        }
        let codes = self.cache.font(&dict, &self.programs, &self.maps);
        let font = codes.map(|codes| Rc::new(self.font(codes, &dict)));
        self.loaded.insert(dict.data(), font.clone());
        font
    }

    fn font(&mut self, codes: hayro_font::Font<'a>, dict: &Dict<'a>) -> Font<'a> {
        let name = dict.get::<Name<'_>>(BASE_FONT);
        let name = name.as_ref().map_or("Helvetica", Name::as_str);
        let descendants = dict.get::<Array<'_>>(DESCENDANT_FONTS);
        let descendant = descendants.and_then(|fonts| fonts.iter::<Dict<'_>>().next());
        let descriptor = descendant.as_ref().unwrap_or(dict).get::<Dict<'_>>(FONT_DESC);
        let descriptor = descriptor.unwrap_or_default();
        let fallback = match (descendant, dict.get::<Object<'_>>(TO_UNICODE)) {
            // Some programs name the identity instead of giving a table.
            (None, _) | (_, Some(Object::Name(_))) => Fallback::Code,
            (Some(descendant), _) => {
                collection(dict, &descendant).unwrap_or_else(|| program(&codes))
            }
        };
        let (face, height) = (self.number(name, &descriptor), height(name, &descriptor));
        Font { codes, fallback, face, height }
    }

    fn number(&mut self, name: &str, descriptor: &Dict<'_>) -> u16 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let lower = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let is_bold = match descriptor.get::<f32>(FONT_WEIGHT) {
            Some(weight) => weight >= BOLD_WEIGHT,
            None => {
                descriptor.get::<u32>(FLAGS).is_some_and(|flags| flags & FORCE_BOLD != 0)
                    || (!has(&PLAIN_NAMES)
                        && descriptor.get::<f32>(STEM_V).is_some_and(|stem| stem > BOLD_STEM))
            }
        };
        let face = Face {
            is_bold: is_bold || has(&BOLD_NAMES),
            is_mono_by_name: has(&MONO_NAMES),
            ..Face::default()
        };
        // No real file has more fonts than there are indexes.
        let number = self.faces.len().min(usize::from(u16::MAX));
        if number == self.faces.len() {
            self.faces.push(face);
        }
        self.numbers.insert(name.to_owned(), number as u16);
        number as u16
    }
}

/// The East Asian character collection of a font with CIDs.
fn collection(dict: &Dict<'_>, descendant: &Dict<'_>) -> Option<Fallback> {
    let numbers = match dict.get::<Object<'_>>(ENCODING)? {
        Object::Name(name) if name.starts_with(b"Identity") => CMap::identity_h(),
        Object::Name(name) => {
            CMap::parse(load_embedded(CMapName::from_bytes(&name))?, load_embedded)?
        }
        Object::Stream(stream) => CMap::parse(&stream.decoded_data().ok()?, load_embedded)?,
        _ => return None,
    };
    let stated = numbers.metadata().character_collection.clone();
    let chars = stated.and_then(|collection| collection.family.ucs2_cmap()).or_else(|| {
        let system = descendant.get::<Dict<'_>>(CIDSYSTEMINFO)?;
        let (registry, ordering) =
            (system.get::<Bytes<'_>>(REGISTRY)?, system.get::<Bytes<'_>>(ORDERING)?);
        CidFamily::from_registry_ordering(registry.as_bytes(), ordering.as_bytes()).ucs2_cmap()
    })?;
    let chars = CMap::parse(load_embedded(chars)?, load_embedded)?;
    Some(Fallback::Collection(Box::new([numbers, chars])))
}

/// The characters in the program of an embedded font; none if it has no character table.
fn program(codes: &hayro_font::Font<'_>) -> Fallback {
    let data = match codes.glyph(codes.map_code(0), 0) {
        FontGlyph::Outline(glyph) => glyph.font_data(),
        FontGlyph::Type3(_) => None,
    };
    let font = data.as_ref().and_then(|font| FontRef::from_index((*font.data).as_ref(), 0).ok());
    let mut chars = HashMap::new();
    for (c, glyph) in font.iter().flat_map(|font| font.charmap().mappings()) {
        if let Some(c) = char::from_u32(c) {
            chars.entry(glyph.to_u32()).or_insert(c);
        }
    }
    Fallback::Program(chars)
}

/// Ascent and descent, in em. Fonts often state wrong values for both.
fn height(name: &str, descriptor: &Dict<'_>) -> (f32, f32) {
    let name = name.split_once('+').map_or(name, |(_, name)| name);
    let standard = STANDARD_HEIGHTS.iter().find(|(start, _)| name.starts_with(start));
    let (ascent, descent) = standard.map_or(HEIGHT, |(_, height)| *height);
    let stated = |key: &[u8]| descriptor.get::<f32>(key).map(|height| height / 1000.0);
    let (ascent, descent) = (stated(ASCENT).unwrap_or(ascent), stated(DESCENT).unwrap_or(descent));
    (ascent.clamp(0.5, 1.1), descent.abs().clamp(0.1, 0.4))
}
