//! Isolation of tenants and sub-tenants: random operations, compared with a model.
//!
//! ```text
//! seed -> walk: pick an operation, a scope, a key -> request -> answer
//!                    |                                            |
//!                    v                                            v
//!         model: access and content          == compared with ==  status, sets, counts, bytes
//!         codes: owner of each canary        == searched for ==   every byte of body and headers
//! ```
//! Ids, file names and words are shared by all scopes; canaries are not. For a longer run,
//! `LODESTONE_ISOLATION_SEED` sets the first seed (which is printed) and
//! `LODESTONE_ISOLATION_STEPS` the number of operations per walk.
//!
//! - `canary`: words that identify their owner, and the search for them
//! - `model`: the expected contents of the server; `server`: the server and its requests
//! - `walk`: sending a request, the access it requires, and the search of the response
//! - `uploads`, `searches`, `listings`, `tenants`, `vectors`, `memories`: the operations
//! - `regressions`: bugs that the walks have found
//! - `interference`: actions of others change no byte of a response

mod canary;
mod interference;
mod listings;
mod memories;
mod model;
#[path = "../process/patience.rs"]
mod patience;
mod regressions;
mod searches;
mod server;
mod tenants;
mod uploads;
mod vectors;
mod walk;

use crate::walk::Walk;

const SEED: u64 = 20_250_909;
const STEPS: usize = 2000;

type Operation = fn(&mut Walk);

/// The operations and their weights in a walk.
const OPERATIONS: &[(usize, Operation)] = &[
    (40, Walk::upload),
    (8, Walk::update_metadata),
    (5, Walk::delete_sources),
    (14, Walk::retrieve),
    (14, Walk::full_text),
    (12, Walk::qna),
    (8, Walk::list_sources),
    (6, Walk::sources_by_id),
    (7, Walk::stats),
    (3, Walk::sub_tenant_ids),
    (7, Walk::verify),
    (8, Walk::fetch),
    (4, Walk::redeem_any),
    (5, Walk::jobs),
    (3, Walk::list_tenants),
    (1, Walk::knock),
    (3, Walk::create_any_tenant),
    (1, Walk::delete_tenant),
    (4, Walk::delete_sub_tenant),
    (4, Walk::list_keys),
    (3, Walk::lend_key),
    (14, Walk::upload_vectors),
    (8, Walk::search_vectors),
    (6, Walk::retrieve_vectors),
    (4, Walk::delete_vectors),
    (5, Walk::update_vectors),
    (12, Walk::add_memory),
    (6, Walk::list_memories),
    (8, Walk::retrieve_memories),
    (4, Walk::delete_memory),
];

fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// The first seed, by default or from the environment.
fn seed() -> u64 {
    number("LODESTONE_ISOLATION_SEED", SEED)
}

fn walk(seed: u64) {
    let steps = number("LODESTONE_ISOLATION_STEPS", STEPS as u64);
    println!("LODESTONE_ISOLATION_SEED={seed} LODESTONE_ISOLATION_STEPS={steps}");
    let begun = std::time::Instant::now();
    let mut walk = Walk::new(seed);
    let shares: usize = OPERATIONS.iter().map(|(share, _)| share).sum();
    for _ in 0..steps {
        let mut at = walk.seeded.below(shares);
        let chosen = OPERATIONS.iter().find(|(share, _)| match at < *share {
            true => true,
            false => {
                at -= share;
                false
            }
        });
        chosen.expect("the shares add up").1(&mut walk);
    }
    let Walk { answers, refused, sightings, .. } = walk;
    println!("{steps} operations, {answers} answers searched in {:?}", begun.elapsed());
    println!("{refused} refusals, {sightings} canaries seen, each in its own scope");
    // A walk that sees no canaries, or is refused nothing, would prove nothing.
    assert!(steps < 200 || sightings > answers / 2 && refused > answers / 20);
}

#[test]
fn no_answer_of_the_first_walk_holds_a_foreign_byte() {
    walk(seed());
}

#[test]
fn no_answer_of_the_second_walk_holds_a_foreign_byte() {
    walk(seed() + 1);
}

#[test]
fn no_answer_of_the_third_walk_holds_a_foreign_byte() {
    walk(seed() + 2);
}
