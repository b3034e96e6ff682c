//! The number of rows from which one configuration is cheaper than another.

/// The result of comparing the measured points of two configurations, of which there are at least two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    pub overtaking: Overtaking,
    /// The fewest and the most rows that were measured with both. Nothing is known outside of them.
    pub range: (u64, u64),
}

/// The order of two configurations at the measured points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtaking {
    /// The challenger is cheaper at every point.
    Always,
    /// The challenger is cheaper at no point.
    Never,
    /// The challenger is not cheaper up to one point, and cheaper from the next one on.
    From {
        /// The last number of rows at which it is not cheaper.
        more_expensive_at: u64,
        /// The first number of rows from which it stays cheaper.
        from: u64,
        /// The intersection of the straight lines between the two points.
        about: u64,
    },
    /// The challenger is cheaper at some points, but not from one of them on.
    Sometimes,
}

/// Compares two series of (rows, instructions), ascending in rows. Of several points with the
/// same rows, the first counts. Returns `None` if fewer than two numbers of rows were measured with
/// both, which say nothing about others.
pub fn overtaking(base: &[(u64, u64)], challenger: &[(u64, u64)]) -> Option<Compared> {
    let mut points: Vec<(u64, u64, u64)> = base
        .iter()
        .filter_map(|(rows, cost)| {
            let other = challenger.iter().find(|(other, _)| other == rows)?;
            Some((*rows, *cost, other.1))
        })
        .collect();
    points.dedup_by_key(|point| point.0);
    let cheaper = |point: &(u64, u64, u64)| point.2 < point.1;
    let first = points.iter().position(cheaper);
    let last_other = points.iter().rposition(|point| !cheaper(point));
    let [(least, ..), .., (most, ..)] = points[..] else { return None };
    let overtaking = match (first, last_other) {
        (None, _) => Overtaking::Never,
        (Some(_), None) => Overtaking::Always,
        (Some(first), Some(last)) if last + 1 == first => {
            let (low, high) = (points[last], points[first]);
            let lead = |point: (u64, u64, u64)| point.1 as f64 - point.2 as f64;
            let (behind, ahead) = (-lead(low), lead(high));
            let share = if behind + ahead > 0.0 { behind / (behind + ahead) } else { 1.0 };
            let about = low.0 as f64 + share * (high.0 - low.0) as f64;
            let about = (about.ceil() as u64).clamp(low.0 + 1, high.0);
            Overtaking::From { more_expensive_at: low.0, from: high.0, about }
        }
        _ => Overtaking::Sometimes,
    };
    Some(Compared { overtaking, range: (least, most) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheaper_from_the_first_point_after_the_last_more_expensive_one() {
        let base = [(1, 100), (10, 1_000), (100, 10_000)];
        let compared = |challenger: &[(u64, u64)]| {
            overtaking(&base, challenger).map(|found| (found.overtaking, found.range))
        };
        assert_eq!(
            compared(&[(1, 190), (10, 910), (100, 5_000)]),
            Some((Overtaking::From { more_expensive_at: 1, from: 10, about: 6 }, (1, 100)))
        );
        assert_eq!(compared(&[(1, 1), (10, 1), (100, 1)]), Some((Overtaking::Always, (1, 100))));
        assert_eq!(compared(&[(1, 100), (10, 1_000)]), Some((Overtaking::Never, (1, 10))));
        assert_eq!(
            compared(&[(1, 1), (10, 2_000), (100, 1)]),
            Some((Overtaking::Sometimes, (1, 100)))
        );
        assert_eq!(compared(&[]), None);
        // Two cases may have the same rows.
        let twice = [(10, 10), (10, 1_000), (20, 10)];
        let found = overtaking(&twice, &[(10, 100), (20, 100)]).unwrap();
        assert_eq!((found.overtaking, found.range), (Overtaking::Never, (10, 20)));
    }

    #[test]
    fn one_size_is_no_conclusion() {
        for challenger in [&[(10, 1)][..], &[(10, 9_999)], &[(5, 1), (10, 1), (11, 1)]] {
            assert_eq!(overtaking(&[(1, 100), (10, 1_000)], challenger), None);
        }
        assert_eq!(overtaking(&[(10, 10), (10, 1_000)], &[(10, 100), (10, 5)]), None);
    }
}
