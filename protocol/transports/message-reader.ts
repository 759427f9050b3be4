import { isUtf8 } from 'node:buffer'
import { largeText, readLargeMessage, type LargeWork } from '../large-message.ts'
import type { Message } from '../message.ts'
import { largeTextOf } from './large-bytes.ts'
import { messagesIn, noMeter, numberedIn, transportLimits, type MemoryMeter } from './transport.ts'

interface MessageReaderOptions {
  /** Receives the messages of one text. */
  readonly onMessages: (messages: Message[]) => void
  /** Receives a text that holds no messages, and why. */
  readonly onError: (error: unknown, text: string) => void
  /** Where large texts are read. */
  readonly work: LargeWork
  /** In whose name large texts are read. */
  readonly owner: string
  /** Counts the memory of texts that wait. */
  readonly meter?: MemoryMeter
  /** Stops and continues what the texts come from, while a large one is read. */
  readonly pause?: () => void
  readonly resume?: () => void
}

/** The bytes of a large text, and their number. */
interface LargeBytes { readonly chunks: readonly Buffer[], readonly length: number }

const notUtf8 = 'it is not UTF-8'

/** Reads the messages of one stream in their order: small ones at once, large ones in steps, while those behind them wait. */
export class MessageReader {
  readonly #options: MessageReaderOptions
  /** Texts, large texts as their bytes, and ends that wait for a large text before them. */
  readonly #waiting: Array<string | LargeBytes | (() => void)> = []
  #isBusy = false

  constructor (options: MessageReaderOptions) {
    this.#options = options
  }

  push (text: string): void {
    if (this.#isBusy || text.length > largeText) this.#wait(text)
    else this.#read(text)
  }

  /** Reads a text from its bytes, as they came. */
  pushBytes (chunks: readonly Buffer[]): void {
    const size = chunks.reduce((sum, { length }) => sum + length, 0)
    if (size > largeText) {
      this.#wait({ chunks, length: size })
      return
    }
    const [first = Buffer.alloc(0)] = chunks
    const bytes = chunks.length > 1 ? Buffer.concat(chunks) : first
    if (isUtf8(bytes)) this.push(bytes.toString())
    else this.then(() => { this.#options.onError(new SyntaxError(notUtf8), bytes.toString()) })
  }

  /** Runs something after all texts that came before. */
  then (run: () => void): void {
    if (this.#isBusy) this.#wait(run)
    else run()
  }

  #wait (each: string | LargeBytes | (() => void)): void {
    this.#waiting.push(each)
    if (!this.#isBusy) void this.#drain()
  }

  #read (text: string): void {
    let messages: Message[]
    try {
      messages = messagesIn(text)
    } catch (error) {
      this.#options.onError(error, text)
      return
    }
    this.#options.onMessages(messages)
  }

  async #drain (): Promise<void> {
    const { meter = noMeter, pause, resume } = this.#options
    this.#isBusy = true
    pause?.()
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (typeof next === 'function') next()
      else if (typeof next === 'string' && next.length <= largeText) this.#read(next)
      else {
        const account = meter.open(this.#options.owner)
        // What has been received is counted, whether or not it fits.
        account.resize(next.length)
        await this.#readLarge(next)
        account.close()
      }
    }
    this.#isBusy = false
    resume?.()
  }

  async #readLarge (large: string | LargeBytes): Promise<void> {
    const { work, owner, onMessages, onError } = this.#options
    let messages: Message[]
    try {
      const { depth, batch } = transportLimits
      messages = numberedIn(await work.run(owner, async (pause) => {
        const text = typeof large === 'string' ? large : await largeTextOf([...large.chunks], pause)
        return await readLargeMessage(text, depth, batch, pause, 'server')
      }))
    } catch (error) {
      onError(error, typeof large === 'string' ? large : Buffer.concat(large.chunks).toString())
      return
    }
    onMessages(messages)
  }
}
