//! Words that are mistyped.

/// The word that is as near to `typed` as a slip of the hand leaves it.
pub(super) fn nearest<'a>(typed: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = |word: &&str| distance(typed, word);
    let most = if typed.chars().count() < 4 { 1 } else { 2 };
    words.min_by_key(slips).filter(|word| slips(word) <= most)
}

/// How many letters must be put in, left out, exchanged or swapped with the next to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = match (i, j) {
                (0, _) | (_, 0) => i.max(j),
                _ => {
                    let exchanged = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                    let least = exchanged.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let swaps = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                    if swaps { least.min(rows[i - 2][j - 2] + 1) } else { least }
                }
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_forgiven_and_another_word_is_not() {
        let near = |typed| nearest(typed, ["serve", "sync", "status", "logs", "fmt-project"].into_iter());
        assert_eq!(
            (near("sycn"), near("synch"), near("stauts"), near("log")),
            (Some("sync"), Some("sync"), Some("status"), Some("logs"))
        );
        assert_eq!((near("fmtproject"), near("SERVE"), near("x"), near("")), (Some("fmt-project"), None, None, None));
    }
}
