//! Reuse of the embeddings of recent texts.

use super::*;
use lodestone_embed::EmbedderDouble;

/// The test model, recording the number of texts of each call.
#[derive(Debug, Default)]
struct Counting(Mutex<Vec<usize>>);

impl EmbedderDouble for Counting {
    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.0.lock().push(texts.len());
        HashEmbedder.embed_within(lane, context, texts)
    }
}

/// A text is embedded once per tenant and sub-tenant, and the answer stays the same.
#[test]
fn texts_are_read_once_for_each_tenant() {
    let model = Arc::new(Counting::default());
    let answerer = Answerer::new(model.clone());
    let text = "The blue pump lifts 42 litres. The red pump lifts 17 litres.";
    let chunks = [chunk("pumps", 0, text, 0.9)];
    let ask = |tenant: &str, question: &str, chunks: &[RetrievedChunk]| -> Answer {
        let tenant = tenant.repeat(32).parse().unwrap();
        let context = RequestContext::default().of_tenant(tenant);
        answerer.answer(&context, question, chunks, &[], SourceOrder::ByUse).unwrap()
    };
    let first = ask("1", "How many litres does the blue pump lift?", &chunks);
    let again = ask("1", "How many litres does the blue pump lift?", &chunks);
    assert_eq!(first, again);
    ask("1", "What does the red pump lift?", &chunks);
    assert_eq!(*model.0.lock(), [3, 1]);
    assert_eq!(first, ask("2", "How many litres does the blue pump lift?", &chunks));
    let mut north = chunks.clone();
    Arc::make_mut(&mut north[0].source).sub_tenant = SubTenantId::parse("north").unwrap();
    ask("1", "What does the red pump lift?", &north);
    assert_eq!(*model.0.lock(), [3, 1, 3, 3]);
}
