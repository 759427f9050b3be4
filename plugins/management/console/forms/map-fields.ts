import { isObject } from '../../../../protocol/json.ts'
import { countOf, type Draft, addError, type Field, join, maxItems } from './draft.ts'

/**
 * Returns the fields of an object with arbitrary names and string values: each entry has a field for its name and one
 * for its value.
 */
export function mapFields (name: string, draft: Draft): Field[] {
  return Array.from({ length: countOf(draft, name) }, (_, at): Field => {
    const entry = join(name, at)
    const partOf = (part: string, label: string): Field =>
      ({ kind: 'text', name: join(entry, part), label, isRequired: true, value: draft[join(entry, part)] ?? '' })
    return {
      kind: 'pair',
      name: entry,
      label: `Entry ${at + 1}`,
      isRequired: true,
      fields: [partOf('name', 'Name'), partOf('value', 'Value')],
      remove: `remove:${entry}`
    }
  })
}

/** Returns the JSON text of such an object. An entry with neither name nor value is omitted. */
export function readMap (
  name: string, isRequired: boolean, draft: Draft, errors: Record<string, string>
): string | undefined {
  const entries = new Map<string, string>()
  for (let at = 0; at < countOf(draft, name); at++) {
    const entry = join(name, at)
    const field = join(entry, 'name')
    const key = (draft[field] ?? '').trim()
    const text = draft[join(entry, 'value')] ?? ''
    if (key === '' && text === '') continue
    if (key === '') addError(errors, field, 'Enter a name.')
    else if (entries.has(key)) addError(errors, field, 'An entry with this name already exists.')
    else entries.set(key, text)
  }
  if (entries.size === 0 && !isRequired) return undefined
  return `{${[...entries].map((entry) => entry.map((each) => JSON.stringify(each)).join(':')).join(',')}}`
}

/** Adds the fields of such an object to a draft. */
export function fillMap (name: string, value: unknown, draft: Record<string, string>): void {
  if (!isObject(value)) return
  for (const [at, [key, text]] of Object.entries(value).slice(0, maxItems).entries()) {
    draft[join(name, at)] = ''
    draft[join(join(name, at), 'name')] = key
    draft[join(join(name, at), 'value')] = typeof text === 'string' ? text : JSON.stringify(text)
  }
}
