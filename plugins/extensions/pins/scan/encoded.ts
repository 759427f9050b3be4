import { findInjectionPhrases } from './phrases.ts'
import { toSearchableText } from './hidden-unicode.ts'

/** Matches a run of base64 or hexadecimal digits that is long enough to contain a command. */
const runs = /[A-Za-z0-9+/_-]{24,4096}={0,2}/g
/** Max number of runs in one text that are decoded. */
const maxRuns = 50
const isHex = /^(?:[0-9a-f]{2})+$/i
const isReadable = /^[\t\n\r -~]+$/

/** Returns a clause about the first encoded command or instruction in a text; undefined if none is found. */
export function describeEncodedPayload (text: string): string | undefined {
  for (const [run] of [...text.matchAll(runs)].slice(0, maxRuns)) {
    const decoded = Buffer.from(run, isHex.test(run) ? 'hex' : 'base64').toString('latin1')
    if (!isReadable.test(decoded)) continue
    const [first] = findInjectionPhrases(toSearchableText(decoded), false)
    if (first !== undefined) return `encoded text: ${first}`
  }
  return undefined
}
