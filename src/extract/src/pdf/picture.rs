//! Renders a page as PNG with `hayro` and highlights areas on it.
//!
//! The page is rendered with the same frame that places its text, so text areas match the image:
//! points times the scale are pixels.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro::hayro_interpret::InterpreterSettings;
use hayro::kurbo::{Affine, Rect};
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::vello_cpu::color::{AlphaColor, Srgb};
use hayro::vello_cpu::peniko::{BlendMode, Mix};
use hayro::vello_cpu::{Pixmap, RasterizerSettings, RenderContext, Resources, TargetInit};
use hayro::{RenderCache, RenderSettings, render_into};
use hayro_syntax::Pdf;

use crate::ExtractError;
use crate::pdf::frame::Frame;
use crate::pdf::{broken, guard, open};
use crate::picture::{Drawing, PIXELS_MAX, PagePicture};
use lodestone_types::PageArea;

/// Yellow of a highlight; the text under it stays dark.
const MARK: AlphaColor<Srgb> = AlphaColor::new([1.0, 0.86, 0.2, 0.6]);
/// Points by which a highlight extends beyond its area, so that letters do not touch its edge.
const MARK_MARGIN: f64 = 1.5;
/// Channels of a pixel, and those of them that are colour.
const CHANNELS: usize = 4;
const COLOURS: usize = 3;

/// Renders a page.
pub(crate) fn draw(bytes: &[u8], drawing: &Drawing) -> Result<PagePicture, ExtractError> {
    guard::check(bytes)?;
    // A parser may panic on a file that contradicts itself.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let pdf = open(bytes)?;
        draw_page(&pdf, drawing)
    }));
    let problem = "it contradicts itself";
    outcome.unwrap_or(Err(ExtractError::NotDrawn { page: drawing.page, problem }))
}

fn draw_page(pdf: &Pdf, drawing: &Drawing) -> Result<PagePicture, ExtractError> {
    let pages = pdf.pages();
    let number = drawing.page;
    let unknown = || ExtractError::PageUnknown { page: number, pages: pages.len() as u32 };
    let page = pages.get((number as usize).wrapping_sub(1)).ok_or_else(unknown)?;
    let frame = Frame::of_page(page);
    let size = frame.size();
    let (width, height) = pixels(drawing.width, size)?;
    let scale = Affine::scale_non_uniform(
        f64::from(width) / f64::from(size.0),
        f64::from(height) / f64::from(size.1),
    );
    let downwards = Affine::new([1.0, 0.0, 0.0, -1.0, 0.0, f64::from(size.1)]);
    let mut context = RenderContext::new(width, height);
    let (settings, options) = (InterpreterSettings::default(), RenderSettings::default());
    let transform = scale * downwards * frame.matrix();
    render_into(page, &RenderCache::new(), &settings, &options, &mut context, transform);
    mark(&mut context, scale, &drawing.marks);
    context.flush();
    let mut pixmap = Pixmap::new(width, height);
    let rasterizer =
        RasterizerSettings { target_init: TargetInit::Clear(WHITE), ..Default::default() };
    context.render_with(&mut pixmap, &mut Resources::default(), rasterizer);
    let png = png(&pixmap).map_err(|error| broken(&error.to_string()))?;
    Ok(PagePicture { pages: pages.len() as u32, size, png })
}

/// Width and height in pixels of a page of `size` points.
fn pixels(width: u16, size: (f32, f32)) -> Result<(u16, u16), ExtractError> {
    let height = (f32::from(width) * size.1 / size.0).round().max(1.0);
    if f32::from(width) * height > PIXELS_MAX as f32 || height > f32::from(u16::MAX) {
        let what = "pixels of the picture of a page, which is too long for this width";
        return Err(ExtractError::BeyondLimit { what, max: PIXELS_MAX });
    }
    Ok((width, height as u16))
}

/// Highlights areas. Boxes beyond the page are clipped at the edge of the image.
fn mark(context: &mut RenderContext, scale: Affine, areas: &[PageArea]) {
    context.take_current_state();
    context.set_transform(scale);
    context.set_blend_mode(BlendMode::from(Mix::Multiply));
    context.set_paint(MARK);
    for PageArea { x, y, width, height } in areas {
        let [x, y, width, height] = [x, y, width, height].map(|edge| f64::from(*edge));
        let area = Rect::new(x, y, x + width, y + height).inflate(MARK_MARGIN, MARK_MARGIN);
        context.fill_rect(&area);
    }
}

/// Encodes an image as PNG, in greyscale if it has no colours.
fn png(pixmap: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let pixels = pixmap.data_as_u8_slice().chunks_exact(CHANNELS);
    let is_grey = pixels.clone().all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]);
    let (color, kept) = match is_grey {
        true => (png::ColorType::Grayscale, 1),
        false => (png::ColorType::Rgb, COLOURS),
    };
    let data: Vec<u8> = pixels.flat_map(|pixel| &pixel[..kept]).copied().collect();
    let mut written = Vec::new();
    let (width, height) = (pixmap.width().into(), pixmap.height().into());
    let mut encoder = png::Encoder::new(&mut written, width, height);
    encoder.set_color(color);
    encoder.write_header()?.write_image_data(&data)?;
    Ok(written)
}
