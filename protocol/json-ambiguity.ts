import { decodeKey, skipSpace, skipString, skipValue } from './json.ts'

/** Matches the characters that end a number in JSON. */
const numberEnd = /[\s,\]}]/g

/**
 * Returns a clause that says why other programs may read the arguments of a call differently from `JSON.parse`: an
 * object has a member twice, or JavaScript does not represent a number exactly.
 * @param text valid JSON
 * @returns undefined if there is no such reason
 */
export function describeJsonAmbiguity (text: string): string | undefined {
  // For each object and array around the current position, outermost first: the names of the object's members so far;
  // undefined for an array.
  const open: Array<Set<string> | undefined> = []
  let isName = false
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const character = text.charAt(at)
    if (character === '"') {
      const end = skipString(text, at)
      const names = isName ? open.at(-1) : undefined
      if (names !== undefined) {
        const name = decodeKey(text.slice(at + 1, end - 1))
        if (names.has(name)) return `the arguments have the member ${JSON.stringify(name)} twice`
        names.add(name)
      }
      isName = false
      at = end
    } else if (character === '-' || (character >= '0' && character <= '9')) {
      numberEnd.lastIndex = at
      const end = numberEnd.exec(text)?.index ?? text.length
      const number = text.slice(at, end)
      if (!isExact(number)) return `the arguments have the number ${shorten(number)}, which cannot be read exactly`
      at = end
    } else {
      if (character === '{' || character === '[') open.push(character === '{' ? new Set() : undefined)
      else if (character === '}' || character === ']') open.pop()
      isName = character === '{' || (character === ',' && open.at(-1) !== undefined)
      at++
    }
  }
  return undefined
}

/** Where the members of an object start: by name, the last one, and for each start, that of the member after it. */
interface MemberStarts { readonly byName: Map<string, number>, readonly next: Map<number, number>, last: number }

/**
 * Removes duplicate members from all objects in a JSON text, at any depth. The last one is kept, as in `JSON.parse`;
 * all other characters stay.
 * @param isChecked whether the value of an outermost member is checked; the values of others stay as they are
 */
export function withoutAnyDuplicates (text: string, isChecked: (name: string) => boolean = () => true): string {
  // For each object and array around the current position, outermost first; undefined for an array.
  const open: Array<MemberStarts | undefined> = []
  const cuts: Array<readonly [start: number, end: number]> = []
  let isName = false
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const character = text.charAt(at)
    const object = open.at(-1)
    if (character === '"') {
      const end = skipString(text, at)
      if (isName && object !== undefined) {
        const name = decodeKey(text.slice(at + 1, end - 1))
        const former = object.byName.get(name)
        object.next.set(object.last, at)
        if (former !== undefined) cuts.push([former, object.next.get(former) ?? at])
        object.byName.set(name, at)
        object.last = at
        isName = false
        const colon = skipSpace(text, end)
        at = open.length > 1 || isChecked(name) ? end : skipValue(text, skipSpace(text, colon + 1))
        continue
      }
      isName = false
      at = end
      continue
    }
    if (character === '{') open.push({ byName: new Map(), next: new Map(), last: -1 })
    else if (character === '[') open.push(undefined)
    else if (character === '}' || character === ']') open.pop()
    isName = character === '{' || (character === ',' && object !== undefined)
    at++
  }
  let kept = ''
  let from = 0
  for (const [start, end] of cuts.sort(([a], [b]) => a - b)) {
    if (start >= from) kept += text.slice(from, start)
    from = Math.max(from, end)
  }
  return kept + text.slice(from)
}

const shorten = (number: string): string => number.length > 40 ? `${number.slice(0, 40)}…` : number

/** Whether JavaScript represents a number exactly. Very long numbers count as inexact. */
function isExact (number: string): boolean {
  const value = Number(number)
  return number.length <= 100 && Number.isFinite(value) && normalize(number) === normalize(String(value))
}

/**
 * Writes the absolute value of a number as an integer without leading and trailing zeros, and an exponent: `-1.50`
 * becomes `15e-1`. Equal values become the same text.
 */
function normalize (number: string): string {
  const [mantissa = '', exponent = '0'] = number.replace(/^-/, '').toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = (whole + fraction).replace(/^0+/, '')
  const kept = digits.length - (/0*$/.exec(digits)?.[0].length ?? 0)
  return kept === 0 ? '0' : `${digits.slice(0, kept)}e${Number(exponent) - fraction.length + digits.length - kept}`
}
