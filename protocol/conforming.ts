import { isObject } from './json.ts'
import type { Shape } from './shapes/shape.ts'

/**
 * Whether `mend` would leave the text of a parsed value unchanged. It is fast, since it examines known members only. It
 * may return false for a text that needs no repair, and ignores all but the last of duplicate members.
 */
export function conforms (value: unknown, given: Shape): boolean {
  const shape = given.selectParsed?.(value) ?? given
  const { type, values, element } = shape
  if (value === null || (shape === given && given.select !== undefined)) return false
  if (type !== undefined && typeOf(value) !== type) return false
  if (values !== undefined && !values.includes(JSON.stringify(value))) return false
  if (Array.isArray(value)) {
    if (value.length === 0 && shape.isObject === true) return false
    return element === undefined || value.every((each) => conforms(each, element))
  }
  return !isObject(value) || membersConform(value, shape)
}

const typeOf = (value: unknown): string => Array.isArray(value) ? 'list' : typeof value

function membersConform (object: Readonly<Record<string, unknown>>, { members, each, required }: Shape): boolean {
  if (members === undefined && each === undefined) return true
  for (const key of Object.keys(object)) {
    const shape = members !== undefined && Object.hasOwn(members, key) ? members[key] : each
    if (shape !== undefined && !conforms(object[key], shape)) return false
  }
  const valueOf = (key: string): unknown => object[key] ?? undefined
  return required === undefined || required.every((key) => {
    const shape = members?.[key]
    return Object.hasOwn(object, key) || shape?.fallback === undefined || shape.isNeeded?.(valueOf) === false
  })
}
