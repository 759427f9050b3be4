import type { TObject } from '@sinclair/typebox'

/**
 * A body that takes no other members: a misspelt one would not do what it was sent for. The error names the member that
 * was meant.
 */
export const Closed = <Body extends TObject>(schema: Body): Body => ({ ...schema, additionalProperties: false })
