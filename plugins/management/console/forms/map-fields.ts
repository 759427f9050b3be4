import { isObject } from '../../../../protocol/json.ts'
import { countItems, type Draft, addError, type FormField, fieldNameOf, maxItems } from './draft.ts'

/**
 * Returns the fields of an object with arbitrary names and string values: each entry has a field for its name and one
 * for its value.
 */
export function fieldsOfMap (name: string, draft: Draft): FormField[] {
  return Array.from({ length: countItems(draft, name) }, (_, at): FormField => {
    const entry = fieldNameOf(name, at)
    const textField = (part: string, label: string): FormField => {
      const fieldName = fieldNameOf(entry, part)
      return { kind: 'text', name: fieldName, label, isRequired: true, value: draft[fieldName] ?? '' }
    }
    return {
      kind: 'pair',
      name: entry,
      label: `Entry ${at + 1}`,
      isRequired: true,
      fields: [textField('name', 'Name'), textField('value', 'Value')],
      remove: `remove:${entry}`
    }
  })
}

/**
 * Returns the JSON text of an object with any names and string values, from the fields of `fieldsOfMap`; undefined
 * if it is optional and has no entries. An entry with neither name nor value is omitted.
 * @param errors receives the errors by field name
 */
export function readMap (
  name: string, isRequired: boolean, draft: Draft, errors: Record<string, string>
): string | undefined {
  const entries = new Map<string, string>()
  for (let at = 0; at < countItems(draft, name); at++) {
    const entry = fieldNameOf(name, at)
    const field = fieldNameOf(entry, 'name')
    const key = (draft[field] ?? '').trim()
    const text = draft[fieldNameOf(entry, 'value')] ?? ''
    if (key === '' && text === '') continue
    if (key === '') addError(errors, field, 'Enter a name.')
    else if (entries.has(key)) addError(errors, field, 'An entry with this name already exists.')
    else entries.set(key, text)
  }
  if (entries.size === 0 && !isRequired) return undefined
  return `{${[...entries].map((entry) => entry.map((each) => JSON.stringify(each)).join(':')).join(',')}}`
}

/** Adds the names and values of an object to a draft, for `fieldsOfMap`. @param value any other value adds nothing */
export function fillMap (name: string, value: unknown, draft: Record<string, string>): void {
  if (!isObject(value)) return
  for (const [at, [key, text]] of Object.entries(value).slice(0, maxItems).entries()) {
    draft[fieldNameOf(name, at)] = ''
    draft[fieldNameOf(fieldNameOf(name, at), 'name')] = key
    draft[fieldNameOf(fieldNameOf(name, at), 'value')] = typeof text === 'string' ? text : JSON.stringify(text)
  }
}
