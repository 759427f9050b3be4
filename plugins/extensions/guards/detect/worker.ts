// The module that the worker pool runs for long texts.
import { maskJson, type Kind, type Masked } from './mask.ts'

export interface MaskTask { text: string, kinds: readonly Kind[], isResult: boolean }

export const run = ({ text, kinds, isResult }: MaskTask): Masked => maskJson(text, kinds, isResult)
