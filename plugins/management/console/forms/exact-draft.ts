import { isObject } from '../../../../protocol/json.ts'
import { describeJsonAmbiguity } from '../../../../protocol/json-ambiguity.ts'
import type { Draft } from './draft.ts'
import type { SchemaForm } from './schema-form.ts'

/**
 * Converts arguments to the draft of a form; undefined if the form would change or drop a value.
 * @param text the arguments as JSON
 */
export function exactDraftOf (form: SchemaForm, text: string): Draft | undefined {
  const value: unknown = JSON.parse(text)
  const draft = form.toDraft(value)
  const read = form.read(draft)
  // Missing required arguments are reported when the form is submitted. A form without fields submits no arguments.
  const json = 'json' in read ? read.json : form.readValid(draft)
  const shown: unknown = form.fields(draft).length === 0 ? {} : JSON.parse(json)
  // Browsers submit other line breaks than a CR.
  const isChanged = describeJsonAmbiguity(text) !== undefined ||
    Object.values(draft).some((text) => text.includes('\r')) || !contains(shown, value)
  return isChanged ? undefined : draft
}

/** Whether a value has all members and items of another one. Members that a form adds to it do not matter. */
function contains (whole: unknown, part: unknown): boolean {
  if (Array.isArray(part)) {
    return Array.isArray(whole) && whole.length === part.length && part.every((each, at) => contains(whole[at], each))
  }
  if (!isObject(part)) return whole === part
  return isObject(whole) &&
    Object.entries(part).every(([name, each]) => Object.hasOwn(whole, name) && contains(whole[name], each))
}

/** Returns a JSON text with indentation, or unchanged if parsing it would change numbers. */
export const formatJson = (json: string): string =>
  describeJsonAmbiguity(json) === undefined ? JSON.stringify(JSON.parse(json), undefined, 2) : json
