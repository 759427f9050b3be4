import { isObject } from '../../../../protocol/json.ts'
import { resolvePointer } from '../../../base/json-schema/index.ts'
import { DescriptionError } from '../plan.ts'

/** Max references that are followed in a row; more are treated as a cycle. */
const maxHops = 32

/** Resolves the Reference Objects of a description. Only references within the description are followed. */
export class ReferenceResolver {
  readonly #document: Record<string, unknown>

  constructor (document: Record<string, unknown>) {
    this.#document = document
  }

  /**
   * Returns the target of a reference. The target may itself be a Reference Object.
   * @throws DescriptionError for a reference that is invalid, leads to another document, or has no target
   */
  lookUp (ref: string): unknown {
    const quoted = JSON.stringify(ref)
    if (!ref.startsWith('#')) {
      throw new DescriptionError(
        `the reference ${quoted} points outside the description: such references are not followed, so bundle the ` +
        'description into one file'
      )
    }
    if (ref !== '#' && !ref.startsWith('#/')) {
      throw new DescriptionError(`the reference ${quoted} is not valid: it must have the form "#/components/…"`)
    }
    const value = resolvePointer(this.#document, ref)
    if (value === undefined) throw new DescriptionError(`the reference ${quoted} has no target`)
    return value
  }

  /** Returns the final target if the value is a Reference Object, otherwise the value. @throws DescriptionError */
  resolve (value: unknown): unknown {
    let resolved = value
    for (let hops = 0; isObject(resolved) && typeof resolved.$ref === 'string'; hops++) {
      if (hops >= maxHops) throw new DescriptionError(`the reference ${JSON.stringify(resolved.$ref)} refers to itself`)
      resolved = this.lookUp(resolved.$ref)
    }
    return resolved
  }

  /** Like `resolve`, but returns undefined if the result is not an object. @throws DescriptionError */
  resolveObject (value: unknown): Record<string, unknown> | undefined {
    const resolved = this.resolve(value)
    return isObject(resolved) ? resolved : undefined
  }
}
