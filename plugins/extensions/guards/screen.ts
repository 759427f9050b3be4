import { RuleRefusalError } from '../../../protocol/errors.ts'
import { memoryOf } from '../../../protocol/text.ts'
import type { Guard } from '../../../schemas/guards.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { memoryBudget, ShareError } from '../../base/limits/index.ts'
import { workers } from '../../base/threads/index.ts'
import { extensionsLimits } from '../limits.ts'
import { maskJson, type DetectedKind, type MaskedText } from './detect/mask.ts'
import type { MaskTask } from './detect/worker.ts'
import type { CallSide } from './rules.ts'

/** The origin of a text to search. */
export interface TextOrigin {
  readonly side: CallSide
  readonly server: string
  /** The name of the tool at the server; undefined: any tool of the server; null: no tool. */
  readonly tool: string | undefined | null
  /** The call that the text belongs to; undefined for a notification that belongs to no request. */
  readonly call?: GatewayCall
}

/**
 * Counts the characters of one message that were searched in the main thread, over all parts of the message and all
 * guards. `extensionsLimits.guards.inline` limits them.
 */
export class SearchedCharacterCounter { characters = 0 }

/** The kinds of content that a guard has found, without the content itself. */
export interface ContentFinding extends TextOrigin { readonly guard: Guard, readonly found: readonly DetectedKind[] }

/** Thrown when a guard refuses a text. */
export class ContentRefusal extends RuleRefusalError {
  /** The masked text, for the record of the call; `{}` if the text could not be searched. */
  readonly masked: string

  constructor (message: string, masked: string) {
    super('guard', message)
    this.masked = masked
  }
}

const contentNouns: Readonly<Record<DetectedKind, string>> = {
  secrets: 'a secret',
  email: 'an e-mail address',
  card: 'a card number',
  iban: 'an account number',
  phone: 'a phone number'
}

interface ScreenDeps {
  readonly report: (finding: ContentFinding) => void
  readonly warn: (error: unknown, sentence: string) => void
}

/** Searches texts for the content that guards detect. Long messages are searched in a worker thread. */
export class ContentScreener {
  readonly #deps: ScreenDeps

  constructor (deps: ScreenDeps) {
    this.#deps = deps
  }

  /**
   * Applies the detection of one guard to JSON text.
   * @param owner the caller, whose share of the worker threads is used
   * @param searched the counter of the message to which the text belongs
   * @returns the text, masked if the guard masks; a promise only if a worker thread is used
   * @throws ContentRefusal if the guard refuses the text, or cannot search it and has an action other than `flag`
   */
  apply (
    guard: Guard, text: string, origin: TextOrigin, owner: string, searched: SearchedCharacterCounter
  ): string | Promise<string> {
    const kinds = guard.detect ?? []
    if (kinds.length === 0) return text
    const isResult = origin.side === 'results'
    if (searched.characters + text.length <= extensionsLimits.guards.inline) {
      searched.characters += text.length
      return this.#settle(guard, text, maskJson(text, kinds, isResult), origin)
    }
    return this.#search({ text, kinds, isResult }, owner).then(
      (masked) => this.#settle(guard, text, masked, origin),
      (error: unknown) => {
        this.#deps.warn(error, `A text could not be searched by the guard ${guard.name}`)
        if (guard.action === 'flag') return text
        const why = error instanceof ShareError ? `: ${error.message}` : ' in time'
        throw new ContentRefusal(`The guard "${guard.name}" could not search the ${origin.side}${why}`, '{}')
      }
    )
  }

  async #search (task: MaskTask, owner: string): Promise<MaskedText> {
    const { cost, time } = extensionsLimits.guards
    // The account of an answer is closed once its text has been passed on to the guards.
    const release = memoryBudget.reserve(owner, memoryOf(task.text) * cost)
    try {
      return await workers.run<MaskedText>('plugins/extensions/guards/detect/worker', task, { owner, time })
    } finally {
      release()
    }
  }

  #settle (guard: Guard, text: string, { text: masked, found }: MaskedText, origin: TextOrigin): string {
    if (found.length === 0) return text
    this.#deps.report({ ...origin, guard, found })
    if (guard.action === 'flag') return text
    if (guard.action === 'mask') return masked
    const what = found.map((kind) => contentNouns[kind]).join(' and ')
    throw new ContentRefusal(`The guard "${guard.name}" refuses this call: the ${origin.side} contain ${what}`, masked)
  }
}
