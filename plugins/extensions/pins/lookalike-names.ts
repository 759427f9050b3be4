/** Maps digits and non-Latin letters to the Latin letters that they look like. */
const drawnLike: ReadonlyMap<string, string> = new Map([
  'аa вb сc ԁd еe ѐe һh іi јj кk мm нh оo рp ԛq ѕs тt уy ѵv ԝw хx',
  'αa βb γy εe ηn ιi κk νv οo ρp τt υu χx ıi ɡg ɑa ոn օo սu հh 0o 1l 3e 5s |l'
].flatMap((pairs) => pairs.split(' ')).map((pair) => [pair.slice(0, -1), pair.slice(-1)]))

/** Returns a name in lower case without separators; names that differ only in case or separators are no imitations. */
export const normalizeName = (name: string): string => name.normalize('NFC').toLowerCase().replace(/[-_.\s]+/g, '')

/** Returns a key for a name. Names that people and models may confuse have the same key. */
export const lookalikeKey = (name: string): string =>
  normalizeName(name).normalize('NFKD').replace(/[\p{M}\p{Cf}]+/gu, '')
    .replace(/[^a-z]/gu, (letter) => drawnLike.get(letter) ?? letter)
    .replaceAll('rn', 'm').replaceAll('vv', 'w').replaceAll('i', 'l')
