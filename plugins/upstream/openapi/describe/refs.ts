import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError } from '../problems.ts'

/** References in a row, before they count as a circle. */
const mostHops = 32

/** Finds what a description's references stand for. Only those within it are followed. */
export class References {
  readonly #document: Record<string, unknown>

  constructor (document: Record<string, unknown>) {
    this.#document = document
  }

  /** @throws DescriptionError naming a reference that leads out of the description, or to nothing */
  lookUp (ref: string): unknown {
    if (!ref.startsWith('#')) {
      throw new DescriptionError(
        `the reference ${JSON.stringify(ref)} leads out of the description: such references are never followed, so bundle the description into one file`
      )
    }
    let value: unknown = this.#document
    for (const step of ref === '#' ? [] : pathOf(ref)) {
      if (Array.isArray(value) ? !/^\d+$/.test(step) : !isObject(value)) value = undefined
      else value = Object.hasOwn(value as object, step) ? (value as Record<string, unknown>)[step] : undefined
      if (value === undefined) throw new DescriptionError(`the reference ${JSON.stringify(ref)} leads to nothing`)
    }
    return value
  }

  /** The value itself, or what its `$ref` stands for in the end. */
  resolve (value: unknown): unknown {
    for (let hops = 0; isObject(value) && typeof value.$ref === 'string'; hops++) {
      if (hops >= mostHops) throw new DescriptionError(`the reference ${JSON.stringify(value.$ref)} leads to itself`)
      value = this.lookUp(value.$ref)
    }
    return value
  }

  /** The same, where an object is expected; anything else counts as none. */
  resolveObject (value: unknown): Record<string, unknown> | undefined {
    const resolved = this.resolve(value)
    return isObject(resolved) ? resolved : undefined
  }
}

function pathOf (ref: string): string[] {
  if (!ref.startsWith('#/')) {
    throw new DescriptionError(`the reference ${JSON.stringify(ref)} cannot be read: it must be like "#/components/…"`)
  }
  return ref.slice(2).split('/').map((step) => {
    try {
      return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    } catch {
      return step.replaceAll('~1', '/').replaceAll('~0', '~')
    }
  })
}
