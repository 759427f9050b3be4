import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import { limits } from '../../base/limits/index.ts'
import type { ListRead } from './read-list.ts'

/** Max times that it is asked again since its connection failed. */
const maxLosses = 3
const none = { items: [], extra: '{}', caching: undefined }

/**
 * The tools of a server that declares none. Some servers leave them out of their capabilities and list them all the same, so each is asked
 * once; one that answers is asked again with each reading. One that does not, or ends because of it, is left alone.
 */
export class UndeclaredTools {
  /** Why it has none, as a clause; undefined: it lists them. */
  #refusal: string | undefined
  #isMethodUnknown = false
  /** How often its connection failed meanwhile, which says nothing of its tools. */
  #losses = 0

  /** Whether it is to be asked. */
  get mayHave (): boolean { return this.#refusal === undefined || (this.#losses > 0 && this.#losses < maxLosses) }

  /**
   * Asks it.
   * @param read reads the list
   * @param isGone whether its connection has ended
   * @returns no items where it has no answer
   * @throws UpstreamError when its connection has ended
   */
  async read (read: () => Promise<ListRead>, isGone: () => boolean): Promise<ListRead> {
    this.#refusal = 'its connection ended when it was asked for them'
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<undefined>((resolve) => { timer = setTimeout(() => { resolve(undefined) }, limits.undeclaredTools) })
    try {
      const list = await Promise.race([read(), late])
      this.#refusal = list ? undefined : 'it does not answer tools/list'
      this.#losses = 0
      return list ?? none
    } catch (error) {
      if (!(error instanceof RpcError || error instanceof UpstreamError) || isGone()) {
        this.#losses = 0
        throw error
      }
      this.#isMethodUnknown = error instanceof RpcError && error.code === code.methodNotFound
      const isLost = error instanceof UpstreamError && error.fault === 'broken' && error.status === undefined
      this.#refusal = isLost ? `tools/list failed: ${error.message}` : `it answers tools/list with an error: ${error.message}`
      this.#losses = isLost ? this.#losses + 1 : 0
      return isLost && this.mayHave ? { ...none, failure: error.message } : none
    } finally {
      clearTimeout(timer)
    }
  }

  /** What is told of it, as a sentence. @param count how many it lists @param hasOthers it declares other lists */
  sentence (count: number, hasOthers: boolean): string | undefined {
    if (count > 0) return 'it does not declare tools, but lists them: they are shown'
    if (hasOthers && (this.#refusal === undefined || this.#isMethodUnknown)) return undefined
    return `it declares no tools: ${this.#refusal ?? 'its list is empty'}`
  }
}
