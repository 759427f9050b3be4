import { Semaphore, Shares } from '../../base/limits/index.ts'

/** A UTF-8 text in chunks, and its hash. An undefined chunk is a placeholder that is filled in at each use. */
export interface DocumentText {
  readonly chunks: ReadonlyArray<Buffer | undefined>
  readonly hash: string
  /** Whether the text would exceed the max size of a document: then there are no chunks. */
  readonly isTooLarge?: boolean
}

const sizeOf = ({ chunks }: DocumentText): number => chunks.reduce((sum, chunk) => sum + (chunk?.length ?? 0), 0)

interface CacheLimits {
  readonly maxTexts: number
  /** In bytes, keys included. */
  readonly maxSize: number
  /** Max pending texts, with a share for each owner. */
  readonly maxPending: number
}

/**
 * Texts by key, bounded in number and size. The least recently used are evicted. Texts are made one at a time, owners
 * take turns, and concurrent callers share one result.
 */
export class DocumentCache {
  readonly #texts = new Map<string, DocumentText>()
  readonly #pending = new Map<string, Promise<DocumentText>>()
  readonly #limits: CacheLimits
  readonly #turns = new Semaphore({ places: 1 })
  readonly #waiting: Shares
  #size = 0

  constructor (limits: CacheLimits) {
    this.#limits = limits
    this.#waiting = new Shares(limits.maxPending, 'OpenAPI documents that are being written')
  }

  /**
   * The text of a key, made if it is not cached.
   * @param owner the owner of the request
   * @throws ShareError if too many are pending
   */
  async get (key: string, make: () => Promise<DocumentText>, owner = ''): Promise<DocumentText> {
    const cached = this.#texts.get(key)
    if (cached) {
      this.#texts.delete(key)
      this.#texts.set(key, cached)
      return cached
    }
    const pending = this.#pending.get(key)
    if (pending) return await pending
    const leave = this.#waiting.take(owner)
    const made = this.#make(key, make, owner).finally(() => {
      this.#pending.delete(key)
      leave()
    })
    this.#pending.set(key, made)
    return await made
  }

  async #make (key: string, make: () => Promise<DocumentText>, owner: string): Promise<DocumentText> {
    const release = await this.#turns.take(owner)
    try {
      const text = await make()
      this.#add(key, text)
      return text
    } finally {
      release()
    }
  }

  #add (key: string, text: DocumentText): void {
    this.#size += key.length + sizeOf(text)
    this.#texts.set(key, text)
    for (const [oldestKey, oldest] of this.#texts) {
      if (this.#texts.size <= this.#limits.maxTexts && this.#size <= this.#limits.maxSize) break
      this.#texts.delete(oldestKey)
      this.#size -= oldestKey.length + sizeOf(oldest)
    }
  }
}
