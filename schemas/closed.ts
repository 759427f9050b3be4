import type { TObject } from '@sinclair/typebox'

/**
 * Makes a body schema reject unknown members, so that a misspelt one is not silently ignored. The error suggests the
 * member that was probably meant.
 */
export const ClosedObject = <Body extends TObject>(schema: Body): Body => ({ ...schema, additionalProperties: false })
