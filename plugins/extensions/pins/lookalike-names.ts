/** Letters of other scripts, and digits, that are drawn like a Latin letter. */
const drawnLike: Readonly<Record<string, string>> = {
  а: 'a', в: 'b', с: 'c', ԁ: 'd', е: 'e', ѐ: 'e', һ: 'h', і: 'i', ј: 'j', к: 'k', м: 'm', н: 'h', о: 'o', р: 'p', ԛ: 'q', ѕ: 's',
  т: 't', у: 'y', ѵ: 'v', ԝ: 'w', х: 'x', α: 'a', β: 'b', ε: 'e', η: 'n', ι: 'i', κ: 'k', ν: 'v', ο: 'o', ρ: 'p', τ: 't', υ: 'u',
  χ: 'x', γ: 'y', ı: 'i', ɡ: 'g', ɑ: 'a', ո: 'n', օ: 'o', ս: 'u', հ: 'h', 0: 'o', 1: 'l', 3: 'e', 5: 's', '|': 'l'
}

/** A name without differences of case and of separators, which many servers write in their own way. */
export const plainKey = (name: string): string => name.normalize('NFC').toLowerCase().replace(/[-_.\s]+/g, '')

/** What a name looks like: equal for names that people and models confuse. */
export const lookalikeKey = (name: string): string =>
  plainKey(name).normalize('NFKD').replace(/[\p{M}\p{Cf}]+/gu, '')
    .replace(/[^a-z]/gu, (letter) => drawnLike[letter] ?? letter).replaceAll('rn', 'm').replaceAll('vv', 'w').replaceAll('i', 'l')
