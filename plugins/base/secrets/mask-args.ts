import { maskTokens, isAbsoluteUrl, type MaskSecret } from './tokens.ts'
import { mask, secretName, maskUrl } from './mask.ts'

const flag = /^-{1,2}[\w.-]+$/
const headerFlag = /^(-H|--headers?)$/
const secretFlag = /^-{1,2}(bearer|jwt|pat)$/i
/** Whether an argument is about language model tokens: their number, or a tokenizer. */
const isAboutTokens = (name: string, value: string): boolean =>
  /tokeni[sz]er/i.test(name) || (/tokens/i.test(name) && /^\d{1,9}$/.test(value))
const userFlag = /^(-u|--user)$/
const scheme = /^(bearer|basic)$/i

/** Masks arguments for display: values after `--api-key` or `--header`, values of `--token=`, and tokens. */
export const maskArgs = (args: readonly unknown[], cover: MaskSecret = mask): unknown[] =>
  maskNamed(args, cover).map((arg) => typeof arg === 'string' ? maskTokens(arg, cover) : arg)

/** Masks the arguments that a flag or a name marks as secret. */
function maskNamed (args: readonly unknown[], cover: MaskSecret): unknown[] {
  return args.map((arg, at) => {
    if (typeof arg !== 'string') return arg
    const before = args[at - 1]
    if (typeof before !== 'string' || !flag.test(before)) return maskWord(arg, cover)
    if (headerFlag.test(before)) return maskHeader(arg, cover)
    const [, user, password] = userFlag.test(before) ? /^([^:]*:)(.*)$/s.exec(arg) ?? [] : []
    if (user !== undefined && password !== undefined) return `${user}${cover(password, 'password')}`
    // A secret may start with a dash. A flag without a value is followed by another flag, `--long` or `-s`.
    const isNamed = (secretName.test(before) || secretFlag.test(before)) && !isAboutTokens(before, arg)
    return isNamed && !/^(--|-[a-z]$)/i.test(arg) ? cover(arg, before) : maskWord(arg, cover)
  })
}

/**
 * Masks one argument: `--token=…`, `API_KEY=…`, `--env=API_KEY=…`, `--header=X: …`, `Authorization: …`, a URL, or JSON.
 * @param isInner whether it is the value after the `=` of another one
 */
function maskWord (text: string, cover: MaskSecret, isInner = false): string {
  const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) {
    if (secretName.test(name) && !isAboutTokens(name, value)) return `${name}=${cover(value, name)}`
    if (!isInner) return `${name}=${headerFlag.test(name) ? maskHeader(value, cover) : maskWord(value, cover, true)}`
    return isAbsoluteUrl(value) ? `${name}=${maskUrl(value, cover)}` : maskCommand(text, cover)
  }
  if (isAbsoluteUrl(text)) return maskUrl(text, cover)
  if (secretName.test(/^[\w-]+(?=:)/.exec(text)?.[0] ?? '')) return maskHeader(text, cover)
  if (/^[{[]/.test(text)) return secretName.test(text) ? cover(text, 'json') : text
  return maskCommand(text, cover)
}

/** Masks a command or settings in one argument: `export TOKEN=…; run`, `host=h password=…`, `curl -H 'X: …'`. */
function maskCommand (text: string, cover: MaskSecret): string {
  const parts = text.split(/([\s;]+)/)
  if (parts.length === 1) return text
  return parts.map((part, at) => {
    const before = parts[at - 2]
    const [, quote = '', word = ''] = /^(['"]*)(.*)$/s.exec(part) ?? []
    if (at % 2 === 1 || word === '') return part
    const followsName =
      before !== undefined && /(:|^-.*)$/.test(before) && secretName.test(before) && !scheme.test(word)
    const isSecret = followsName || (before !== undefined && scheme.test(before))
    return `${quote}${isSecret ? cover(word, before ?? '') : maskPart(word, cover)}`
  }).join('')
}

/** Masks one word of a longer text. */
function maskPart (word: string, cover: MaskSecret): string {
  const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(word) ?? []
  if (name !== undefined && value !== undefined && secretName.test(name)) return `${name}=${cover(value, name)}`
  return isAbsoluteUrl(word) ? maskUrl(word, cover) : word
}

/** Masks a header within one argument, `Name: value`. */
function maskHeader (text: string, cover: MaskSecret): string {
  const [, name, value] = /^([\w-]+: *)(.*)$/s.exec(text) ?? []
  return name === undefined || value === undefined ? cover(text, 'header') : `${name}${cover(value, name)}`
}
