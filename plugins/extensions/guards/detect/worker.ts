// The module that `ContentScreener` runs in a worker thread for long messages.
import { maskJson, type DetectedKind, type MaskedText } from './mask.ts'

/** The arguments of `maskJson`. */
export interface MaskTask { text: string, kinds: readonly DetectedKind[], isResult: boolean }

export const run = ({ text, kinds, isResult }: MaskTask): MaskedText => maskJson(text, kinds, isResult)
