/** Digits and non-Latin letters that look like a Latin letter. */
const drawnLike: ReadonlyMap<string, string> = new Map([
  'аa вb сc ԁd еe ѐe һh іi јj кk мm нh оo рp ԛq ѕs тt уy ѵv ԝw хx',
  'αa βb γy εe ηn ιi κk νv οo ρp τt υu χx ıi ɡg ɑa ոn օo սu հh 0o 1l 3e 5s |l'
].flatMap((pairs) => pairs.split(' ')).map((pair) => [pair.slice(0, -1), pair.slice(-1)]))

/** Returns a name without differences in case and separators, which are common between servers. */
export const normalizeName = (name: string): string => name.normalize('NFC').toLowerCase().replace(/[-_.\s]+/g, '')

/** Returns a key that is equal for names that people and models confuse. */
export const lookalikeKey = (name: string): string =>
  normalizeName(name).normalize('NFKD').replace(/[\p{M}\p{Cf}]+/gu, '')
    .replace(/[^a-z]/gu, (letter) => drawnLike.get(letter) ?? letter)
    .replaceAll('rn', 'm').replaceAll('vv', 'w').replaceAll('i', 'l')
