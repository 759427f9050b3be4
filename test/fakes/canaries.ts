import assert from 'node:assert/strict'

const word = 'canary'
/** The characters of base64 that a word alone determines, when so many bytes stand before it. */
const inBase64 = (before: number): string =>
  Buffer.from(`${'-'.repeat(before)}${word}--`)
    .toString('base64')
    .slice(Math.ceil((before * 8) / 6), Math.floor(((before + word.length) * 8) / 6))
const base64 = [0, 1, 2].map(inBase64)
const hex = Buffer.from(word).toString('hex')

let planted = 0
/** A secret that can be found again. A mask shows the last four characters, and those tell nothing. */
export const canary = (what: string): string => `${word}-${what}-${String(planted++).padStart(12, '0')}`

const holdsCanary = (text: string): boolean => {
  const lower = text.toLowerCase()
  return lower.includes(word) || lower.includes(hex) || base64.some((each) => text.includes(each))
}

/** None of these texts holds a canary: as it stands, in hex, or in base64. @param where they stand, for the message */
export function assertNoCanary (texts: readonly string[], where: string): void {
  const found = texts.find(holdsCanary)
  assert.equal(found, undefined, `${where} holds a secret: ${found?.slice(0, 1_000)}`)
}
