import { isObject } from '../../../../protocol/json.ts'
import type { Schema } from './schema.ts'

/** Returns the field name of a value in one of the alternatives of a field. @param at the index of the alternative */
export const variantFieldName = (name: string, at: number): string => `${name}~or${at}`

/** Returns the index of the chosen alternative from the text of its field; 0 if the text is no valid index. */
export function parseVariantIndex (typed: string | undefined, count: number): number {
  const at = Number(typed ?? 0)
  return Number.isInteger(at) && at >= 0 && at < count ? at : 0
}

/** Returns the label of an alternative. @param at its index */
export function describeVariant (schema: Schema, at: number): string {
  const { title, description, type, properties } = schema
  if (typeof title === 'string') return title
  if (typeof description === 'string' && description.length < 80) return description
  const names = isObject(properties) ? Object.keys(properties) : []
  return names.length > 0 ? names.slice(0, 4).join(', ') : typeof type === 'string' ? type : `Form ${at + 1}`
}
