import type { FastifyError } from 'fastify'
import { closestMember } from '../../../schemas/unknown-members.ts'
import { errors } from './list.ts'
import { parsePointer } from '../json-schema/index.ts'

/** A schema violation, in the form sent to clients. `path`: member names separated by dots. */
export interface Finding { readonly path: string, readonly message: string }

/**
 * `isChoice`: the finding says only that the value matches none of several schemas (`anyOf`). For each of these
 * schemas, there are further findings.
 */
interface RawFinding extends Finding { readonly isChoice: boolean }

/** Converts each of Ajv's errors to a finding. */
function rawFindings ({ validation = [], validationContext = 'body' }: FastifyError): RawFinding[] {
  return validation.map((found) => {
    const { keyword, instancePath, message = 'is not valid', params } = found
    const { missingProperty, additionalProperty } = params as { missingProperty?: string, additionalProperty?: string }
    const name = missingProperty ?? additionalProperty
    return {
      path: [validationContext, ...parsePointer(instancePath), ...(name === undefined ? [] : [name])].join('.'),
      message: messageFor(keyword, message, params, 'parentSchema' in found ? found.parentSchema : undefined),
      isChoice: keyword === 'anyOf'
    }
  })
}

/** The keywords that bound a size, with the words for a message. */
const sizeKeywords: Readonly<Record<string, readonly [bound: 'least' | 'most', noun: string]>> = {
  minLength: ['least', 'characters'],
  maxLength: ['most', 'characters'],
  minItems: ['least', 'entries'],
  maxItems: ['most', 'entries'],
  minProperties: ['least', 'members'],
  maxProperties: ['most', 'members']
}

/**
 * Creates the error for invalid values. Its message describes the first finding; its member `errors` lists all, if
 * there are several.
 * @param findings at least one
 */
export function invalidInputError (findings: readonly Finding[]): FastifyError {
  const { path, message } = findings[0] ?? { path: '', message: 'is not valid' }
  const error = new errors.InvalidInput(`"${path}": ${message}`)
  return findings.length > 1 ? Object.assign(error, { errors: findings }) : error
}

/**
 * Returns the message of a finding.
 * @param message the message of the validator
 * @param schema the value's schema, if reported
 */
function messageFor (keyword: string, message: string, params: Record<string, unknown>, schema: unknown): string {
  const { missingProperty, additionalProperty, allowedValues, allowedValue } = params
  if (missingProperty !== undefined) return 'is required'
  if (additionalProperty !== undefined) return unknownMessage(String(additionalProperty), schema)
  if (Array.isArray(allowedValues)) return `must be one of ${allowedValues.join(', ')}`
  if (keyword === 'const') return `must be ${JSON.stringify(allowedValue)}`
  if (keyword === 'minimum') return `must be at least ${String(params.limit)}`
  if (keyword === 'maximum') return `must be at most ${String(params.limit)}`
  if (keyword === 'type' && params.type === 'integer') return 'must be a whole number'
  const [bound, noun] = sizeKeywords[keyword] ?? []
  if (bound === undefined || noun === undefined || typeof params.limit !== 'number') return message
  if (bound === 'least' && params.limit === 1) return 'must not be empty'
  return `must have at ${bound} ${params.limit} ${noun}`
}

/** Suggests a known member for an unknown one, or lists the known members. */
function unknownMessage (name: string, schema: unknown): string {
  const { properties } = (schema ?? {}) as { properties?: object }
  const known = Object.keys(properties ?? {})
  const meant = closestMember(name, known)
  if (meant !== undefined) return `is not known: did you mean ${JSON.stringify(meant)}?`
  return known.length === 0
    ? 'is not known'
    : `is not known; there are ${known.map((each) => JSON.stringify(each)).join(', ')}`
}

/**
 * Returns the findings of a validation error; undefined for any other error. The findings of alternative schemas for
 * one value (`anyOf`) are joined.
 */
export function findingsOf (error: FastifyError): Finding[] | undefined {
  if (!error.validation) return undefined
  const all = rawFindings(error)
  const choices = new Set(all.filter(({ isChoice }) => isChoice).map(({ path }) => path))
  const isFirst = ({ path }: Finding, at: number): boolean => all.findIndex((each) => each.path === path) === at
  return all
    .filter((each, at) => !each.isChoice && (!choices.has(each.path) || isFirst(each, at)))
    .map(({ path, message }) => ({ path, message: choices.has(path) ? alternatives(all, path) : message }))
}

/** Joins the messages for one value: `must be string or number`. */
function alternatives (all: readonly RawFinding[], path: string): string {
  const messages = new Set(all.filter((each) => each.path === path && !each.isChoice).map(({ message }) => message))
  return [...messages].join(' or ').replaceAll(' or must be ', ' or ')
}

/**
 * Returns the finding with the longest path; undefined if there are no findings. Of several alternative schemas, the
 * client probably meant the schema that the value matches down to this path.
 */
export const mostSpecificFinding = (findings: readonly Finding[] | undefined): Finding | undefined =>
  findings?.reduce((most, each) => each.path.split('.').length > most.path.split('.').length ? each : most)
