// JSON as text, by a generator that knows what it wrote: nothing is read back by the code under test.
import fc from 'fast-check'
import { parseJsonText } from '../../protocol/parse-json-text.ts'

export const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)
export const holds = <Ts extends [unknown, ...unknown[]]>(property: fc.IProperty<Ts>, numRuns = 400): void => {
  fc.assert(property, { seed, numRuns })
}

export interface Written {
  text: string
  depth: number
  members?: Array<{ key: string, keyText: string, value: string }>
  elements?: string[]
}

export const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 2 })
const unit = fc.constantFrom(
  'a', 'b', 'n', '"', '\\', '/', '\n', '\r', '\0', '{', '}', '[', ']', ',', ':', ' ', 'é', '\u2028', '\ud83d', '\ude00',
  '\ud83d\ude00'
)
const toStringText = (parts: Array<[string, boolean]>): { value: string, text: string } => {
  const escaped = (part: string): string =>
    part.split('').map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  const written = parts.map(([part, isEscaped]) => isEscaped ? escaped(part) : JSON.stringify(part).slice(1, -1))
  return { value: parts.map(([part]) => part).join(''), text: `"${written.join('')}"` }
}
const escapes = fc.boolean()
const stringText = fc.array(fc.tuple(unit, escapes), { maxLength: 6 }).map(toStringText)
/** Few keys, so that they repeat, and spelt in many ways. */
const keyText = fc.oneof(
  fc.tuple(
    fc.constantFrom('a', 'name', '_meta', '__proto__', 'constructor', 'toString', '', '0', '"', '\\'),
    fc.array(escapes, { minLength: 11, maxLength: 11 })
  )
    .map(([key, how]) => toStringText(key.split('').map((part, at): [string, boolean] => [part, how[at] === true]))),
  stringText
)
const scalar = fc.oneof(
  fc.constantFrom('0', '-0', '1', '-1.50', '1e400', '1E-7', '0.1e+2', '12345678901234567890', 'true', 'false', 'null')
    .map((text): Written => ({ text, depth: 0 })),
  stringText.map(({ text }): Written => ({ text, depth: 0 }))
)
export const {
  value: jsonText,
  object: objectText,
  array: arrayText
} = fc.letrec<{ value: Written; object: Written; array: Written }>((tie) => ({
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, scalar, tie('object'), tie('array')),
  object: fc.tuple(fc.array(fc.tuple(keyText, tie('value'), space, space, space, space), { maxLength: 5 }), space)
    .map(([list, inner]): Written => ({
      text: `{${inner}${list.map(([key, { text }, a, b, c, d]) => `${a}${key.text}${b}:${c}${text}${d}`).join(',')}}`,
      depth: 1 + Math.max(0, ...list.map(([, { depth }]) => depth)),
      members: list.map(([key, { text }]) => ({ key: key.value, keyText: key.text, value: text }))
    })),
  array: fc.tuple(fc.array(fc.tuple(tie('value'), space, space), { maxLength: 5 }), space)
    .map(([list, inner]): Written => ({
      text: `[${inner}${list.map(([{ text }, a, b]) => `${a}${text}${b}`).join(',')}]`,
      depth: 1 + Math.max(0, ...list.map(([{ depth }]) => depth)),
      elements: list.map(([{ text }]) => text)
    }))
}))
export const padded = (written: fc.Arbitrary<Written>): fc.Arbitrary<Written> =>
  fc.tuple(space, written, space).map(([a, each, b]) => ({ ...each, text: `${a}${each.text}${b}` }))

/** An object as `JSON.parse` makes it: own members only, `__proto__` among them. */
export function objectOf (entries: ReadonlyArray<readonly [string, string]>): Record<string, unknown> {
  return Object.fromEntries(entries.map(([key, value]) => [key, parseJsonText(value)]))
}
