import { isObject } from '../../../../protocol/json.ts'
import { dropsConstraint, subschemasOf } from './keywords.ts'
import { DescriptionError } from '../problems.ts'
import type { References } from './refs.ts'

/** Tells which schemas of a description cannot be said whole. */
export class LossDetector {
  readonly #refs: References
  /** References that have been looked at, and those that lead to a loss, be it further on. */
  readonly #seen = new Set<string>()
  readonly #losing = new Set<string>()

  constructor (refs: References) {
    this.#refs = refs
  }

  /** Whether something is left out of a schema, or of what it refers to, so that it takes more than it should. */
  isLossy (schema: unknown): boolean {
    const refs = refsOf(schema)
    if (refs) this.#learn(refs)
    return refs === undefined || refs.some((ref) => this.#losing.has(ref))
  }

  /** Looks at each reference once, and from the losses back to whoever refers to them: circles need no care, and long chains no stack. */
  #learn (refs: readonly string[]): void {
    const open = [...refs]
    const users = new Map<string, string[]>()
    const losing: string[] = []
    for (const ref of open) {
      if (this.#seen.has(ref)) continue
      this.#seen.add(ref)
      const next = refsOf(this.#target(ref))
      if (next === undefined || next.some((to) => this.#losing.has(to))) losing.push(ref)
      for (const to of next ?? []) {
        const known = users.get(to)
        if (known) known.push(ref)
        else users.set(to, [ref])
        open.push(to)
      }
    }
    for (const ref of losing) {
      if (this.#losing.has(ref)) continue
      this.#losing.add(ref)
      losing.push(...users.get(ref) ?? [])
    }
  }

  /** One that leads to nothing is told of where it is needed. */
  #target (ref: string): unknown {
    try {
      return this.#refs.lookUp(ref)
    } catch (error) {
      if (error instanceof DescriptionError) return undefined
      throw error
    }
  }
}

/** The references in a schema; undefined: something is left out of it. */
function refsOf (schema: unknown): string[] | undefined {
  const refs: string[] = []
  const open = [schema]
  for (const each of open) {
    if (!isObject(each)) continue
    if (dropsConstraint(each)) return undefined
    if (typeof each.$ref === 'string') refs.push(each.$ref)
    for (const part of subschemasOf(each)) open.push(part)
  }
  return refs
}
