import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError } from '../problems.ts'
import { dropsConstraint, subschemasOf } from './keywords.ts'
import type { References } from './refs.ts'

/** Finds the schemas of a description whose conversion is lossy: a constraint is dropped, so that the result accepts more. */
export class LossDetector {
  readonly #refs: References
  /** References whose schemas have been examined. */
  readonly #visited = new Set<string>()
  /** References to schemas that are lossy themselves, or refer to a lossy one, directly or not. */
  readonly #lossy = new Set<string>()

  constructor (refs: References) {
    this.#refs = refs
  }

  /** Whether the conversion drops a constraint of the schema, or of a schema that it refers to, directly or not. */
  isLossy (schema: unknown): boolean {
    const refs = losslessRefs(schema)
    if (refs) this.#examine(refs)
    return refs === undefined || refs.some((ref) => this.#lossy.has(ref))
  }

  /**
   * Examines each reference once, and marks those that lead to a lossy schema, from the lossy ones back to their users. Without
   * recursion: cycles need no special case, and long chains do not exceed the stack.
   */
  #examine (refs: readonly string[]): void {
    const queue = [...refs]
    const usersOf = new Map<string, string[]>()
    const lossy: string[] = []
    for (const ref of queue) {
      if (this.#visited.has(ref)) continue
      this.#visited.add(ref)
      const targets = losslessRefs(this.#lookUp(ref))
      if (targets === undefined || targets.some((target) => this.#lossy.has(target))) lossy.push(ref)
      for (const target of targets ?? []) {
        const users = usersOf.get(target)
        if (users) users.push(ref)
        else usersOf.set(target, [ref])
        queue.push(target)
      }
    }
    for (const ref of lossy) {
      if (this.#lossy.has(ref)) continue
      this.#lossy.add(ref)
      lossy.push(...usersOf.get(ref) ?? [])
    }
  }

  /** undefined for a reference that leads to nothing: the conversion reports it where it is used. */
  #lookUp (ref: string): unknown {
    try {
      return this.#refs.lookUp(ref)
    } catch (error) {
      if (error instanceof DescriptionError) return undefined
      throw error
    }
  }
}

/** The references in a schema and its subschemas; undefined where a constraint of one of them is dropped. */
function losslessRefs (schema: unknown): string[] | undefined {
  const refs: string[] = []
  const queue = [schema]
  for (const each of queue) {
    if (!isObject(each)) continue
    if (dropsConstraint(each)) return undefined
    if (typeof each.$ref === 'string') refs.push(each.$ref)
    for (const subschema of subschemasOf(each)) queue.push(subschema)
  }
  return refs
}
