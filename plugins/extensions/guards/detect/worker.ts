// The module that the worker pool runs for long texts.
import { maskJson, type DetectedKind, type MaskedText } from './mask.ts'

export interface MaskTask { text: string, kinds: readonly DetectedKind[], isResult: boolean }

export const run = ({ text, kinds, isResult }: MaskTask): MaskedText => maskJson(text, kinds, isResult)
