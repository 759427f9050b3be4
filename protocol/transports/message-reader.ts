import { largeText, readLargeMessage, type LargeWork } from '../large-message.ts'
import type { Message } from '../message.ts'
import { messagesIn, noMeter, numberedIn, transportLimits, type MemoryMeter } from './transport.ts'

export interface MessageReaderOptions {
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

/** Reads the messages of one stream in their order: small ones at once, large ones in steps, while those behind them wait. */
export class MessageReader {
  readonly #options: MessageReaderOptions
  /** Texts and ends that wait for a large text before them. */
  readonly #waiting: Array<string | (() => void)> = []
  #isBusy = false

  constructor (options: MessageReaderOptions) {
    this.#options = options
  }

  push (text: string): void {
    if (this.#isBusy || text.length > largeText) this.#wait(text)
    else this.#read(text)
  }

  /** Runs something after all texts that came before. */
  then (run: () => void): void {
    if (this.#isBusy) this.#wait(run)
    else run()
  }

  #wait (each: string | (() => void)): void {
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
      else if (next.length <= largeText) this.#read(next)
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

  async #readLarge (text: string): Promise<void> {
    const { work, owner, onMessages, onError } = this.#options
    let messages: Message[]
    try {
      const { depth, batch } = transportLimits
      messages = numberedIn(await work.run(owner, async (pause) => await readLargeMessage(text, depth, batch, pause)))
    } catch (error) {
      onError(error, text)
      return
    }
    onMessages(messages)
  }
}
