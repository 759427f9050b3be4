import { maskTokens, isAbsoluteUrl, type MaskSecret } from './mask-tokens.ts'
import { mask, secretNamePattern, maskUrl } from './mask.ts'

/** A command-line option, such as `-k` or `--api-key`. */
const flag = /^-{1,2}[\w.-]+$/
/** Options whose value is an HTTP header. */
const headerFlag = /^(-H|--headers?)$/
/** Options whose value is a secret although `secretNamePattern` does not match them. */
const secretFlag = /^-{1,2}(bearer|jwt|pat)$/i
/** Whether an option is about the tokens of a language model, such as their number or the tokenizer. */
const isAboutTokens = (name: string, value: string): boolean =>
  /tokeni[sz]er/i.test(name) || (/tokens/i.test(name) && /^\d{1,9}$/.test(value))
/** Options whose value is `user:password`. */
const userFlag = /^(-u|--user)$/
/** HTTP authentication schemes. */
const scheme = /^(bearer|basic)$/i

/**
 * Masks the secrets in command-line arguments for display: values after options such as `--api-key` and `--header`, or
 * in `--token=…`, and words that look like a token.
 */
export const maskArgs = (args: readonly unknown[], maskSecret: MaskSecret = mask): unknown[] =>
  maskNamed(args, maskSecret).map((arg) => typeof arg === 'string' ? maskTokens(arg, maskSecret) : arg)

/** Masks the values that are secret according to the option or the name before them. */
function maskNamed (args: readonly unknown[], maskSecret: MaskSecret): unknown[] {
  return args.map((arg, at) => {
    if (typeof arg !== 'string') return arg
    const before = args[at - 1]
    if (typeof before !== 'string' || !flag.test(before)) return maskWord(arg, maskSecret)
    if (headerFlag.test(before)) return maskHeader(arg, maskSecret)
    const [, user, password] = userFlag.test(before) ? /^([^:]*:)(.*)$/s.exec(arg) ?? [] : []
    if (user !== undefined && password !== undefined) return `${user}${maskSecret(password, 'password')}`
    // A secret may start with a dash, but `--long` and `-s` are options: the preceding option then has no value.
    const isNamed = (secretNamePattern.test(before) || secretFlag.test(before)) && !isAboutTokens(before, arg)
    return isNamed && !/^(--|-[a-z]$)/i.test(arg) ? maskSecret(arg, before) : maskWord(arg, maskSecret)
  })
}

/**
 * Masks one argument: `--token=…`, `API_KEY=…`, `--env=API_KEY=…`, `--header=X: …`, `Authorization: …`, a URL, or JSON.
 * @param isInner whether the text is the value of `name=value`
 */
function maskWord (text: string, maskSecret: MaskSecret, isInner = false): string {
  const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) {
    if (secretNamePattern.test(name) && !isAboutTokens(name, value)) return `${name}=${maskSecret(value, name)}`
    if (!isInner) {
      return `${name}=${headerFlag.test(name) ? maskHeader(value, maskSecret) : maskWord(value, maskSecret, true)}`
    }
    return isAbsoluteUrl(value) ? `${name}=${maskUrl(value, maskSecret)}` : maskCommand(text, maskSecret)
  }
  if (isAbsoluteUrl(text)) return maskUrl(text, maskSecret)
  if (secretNamePattern.test(/^[\w-]+(?=:)/.exec(text)?.[0] ?? '')) return maskHeader(text, maskSecret)
  if (/^[{[]/.test(text)) return secretNamePattern.test(text) ? maskSecret(text, 'json') : text
  return maskCommand(text, maskSecret)
}

/** Masks secrets in an argument of several words: `export TOKEN=…; run`, `host=h password=…`, `curl -H 'X: …'`. */
function maskCommand (text: string, maskSecret: MaskSecret): string {
  const parts = text.split(/([\s;]+)/)
  if (parts.length === 1) return text
  return parts.map((part, at) => {
    const before = parts[at - 2]
    const [, quote = '', word = ''] = /^(['"]*)(.*)$/s.exec(part) ?? []
    if (at % 2 === 1 || word === '') return part
    const followsName =
      before !== undefined && /(:|^-.*)$/.test(before) && secretNamePattern.test(before) && !scheme.test(word)
    const isSecret = followsName || (before !== undefined && scheme.test(before))
    return `${quote}${isSecret ? maskSecret(word, before ?? '') : maskPart(word, maskSecret)}`
  }).join('')
}

/** Masks one word of an argument. */
function maskPart (word: string, maskSecret: MaskSecret): string {
  const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(word) ?? []
  const isNamed = name !== undefined && value !== undefined && secretNamePattern.test(name)
  if (isNamed) return `${name}=${maskSecret(value, name)}`
  return isAbsoluteUrl(word) ? maskUrl(word, maskSecret) : word
}

/** Masks the value of a header in the form `Name: value`. */
function maskHeader (text: string, maskSecret: MaskSecret): string {
  const [, name, value] = /^([\w-]+: *)(.*)$/s.exec(text) ?? []
  return name === undefined || value === undefined ? maskSecret(text, 'header') : `${name}${maskSecret(value, name)}`
}
