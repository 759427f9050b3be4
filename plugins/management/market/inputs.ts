import type { Field, Option } from '../../../schemas/catalogues.ts'
import { newNameProblem } from '../../../schemas/names.ts'
import type { Input, InputWithVariables } from '../../../schemas/server-json.ts'
import { isMask } from '../../base/secrets/index.ts'

/** An entry of a catalogue cannot become a config. The message is a clause for the user. */
export class Unusable extends Error {
  override readonly name = 'Unusable'
}

type Place = Option['place'] & ('env' | 'header' | 'argument' | 'url')

const inBraces = /\{([A-Za-z_][A-Za-z0-9_.-]*)\}/g
/**
 * Marks the position of a placeholder while a value is composed. It cannot occur in the entry's texts, where control
 * characters are rejected.
 */
const mark = '\u0000'

/**
 * Composes the values of one config from the inputs of a registry entry, and collects the inputs that the user has to
 * fill in. The texts are untrusted, and the gateway substitutes `${NAME}` in configs by its environment variables. So
 * the texts must not contain such references, and the names of placeholders begin with `INPUT_` and the server's name,
 * which no other variable does.
 */
export class Inputs {
  readonly required: Field[] = []
  readonly optional: Option[] = []
  readonly #prefix: string
  /** The keys of placeholders, by place and title. */
  readonly #keys = new Map<string, string>()

  /** @param server the name that the server gets */
  constructor (server: string) {
    this.#prefix = `INPUT_${upper(server)}_`
  }

  /**
   * The value of an input.
   * @param title its name, as shown to the user
   * @param isNeeded whether it is mandatory here
   * @returns undefined if the input is omitted: it is optional and has no value
   * @throws Unusable
   */
  fill (input: InputWithVariables, place: Place, title: string, isNeeded = false): string | undefined {
    const { value, default: usual, isRequired = false } = input
    if (value !== undefined) return this.#compose(value, input, place, title, isNeeded)
    if (usual !== undefined) return plainText(usual, title)
    if (!isRequired && !isNeeded) return this.#leaveOut(input, place, title)
    return `\${${this.#key(input, place, title)}}`
  }

  /** Composes a value that contains variables in braces. @throws Unusable for a URL with an undeclared variable */
  #compose (
    value: string, input: InputWithVariables, place: Place, title: string, isNeeded: boolean
  ): string | undefined {
    const { isRequired = false, variables = {} } = input
    const open: Array<[string, Input]> = []
    const text = unmarked(value, title).replace(inBraces, (written, name: string) => {
      const variable = Object.hasOwn(variables, name) ? variables[name] : undefined
      if (variable === undefined) {
        if (place === 'url') throw new Unusable(`its address holds {${name}}, and it does not say what that is`)
        return written
      }
      const given = variable.value ?? variable.default
      if (given !== undefined) return unmarked(given, name)
      open.push([name, variable])
      return mark
    })
    const mayBeEmpty = !isRequired && !isNeeded && open.some(([, variable]) => variable.isRequired !== true)
    if (mayBeEmpty) return this.#leaveOut(input, place, title)
    check(text, title)
    return text.replaceAll(mark, () => {
      const [name, variable] = open.shift() ?? ['', {}]
      return `\${${this.#key({ isSecret: input.isSecret, ...variable }, place, name)}}`
    })
  }

  #leaveOut ({ description, isSecret = false }: Input, place: Place, title: string): undefined {
    this.optional.push({ title, place, description, sensitive: isSecret })
  }

  /** The key of a placeholder. Equal variables in the same place share one. */
  #key ({ description, isSecret = false, format, placeholder, choices }: Input, place: Place, title: string): string {
    const id = `${place}/${title}`
    const known = this.#keys.get(id)
    if (known !== undefined) return known
    const taken = new Set(this.#keys.values())
    const wanted = `${this.#prefix}${upper(title)}`
    let key = wanted
    for (let number = 2; taken.has(key); number++) key = `${wanted}_${number}`
    this.#keys.set(id, key)
    this.required.push({ key, title, description, sensitive: isSecret, format, placeholder, choices })
    return key
  }
}

const upper = (text: string): string =>
  text.toUpperCase().replace(/[^A-Z0-9]+/g, '_').replace(/^_+|_+$/g, '').slice(0, 64)

/** Checks an untrusted text for use in a config. @throws Unusable */
export const plainText = (text: string, title: string): string => check(unmarked(text, title), title)

/** @throws Unusable for a text with control characters */
function unmarked (text: string, title: string): string {
  if (/\p{Cc}/u.test(text)) throw new Unusable(`the value of ${quoteText(title)} holds a control character`)
  return text
}

/** @throws Unusable for a text that the gateway would interpret as a variable or a mask */
function check (text: string, title: string): string {
  if (/\$\{[A-Za-z_]/.test(text)) {
    throw new Unusable(
      `the value of ${quoteText(title)} names a variable of this gateway's environment ($\{…})`
    )
  }
  if (isMask(text)) throw new Unusable(`the value of ${quoteText(title)} looks like a masked secret`)
  return text
}

/** Quotes an untrusted name for a message. */
export const quoteText = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)

const cleaned = (text: string): string =>
  text.normalize('NFC').replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[._-]+|[._-]+$/g, '').slice(0, 64)

/** The name for a server of a catalogue: the first of these texts that is a valid name, without invalid characters. */
export function localName (...texts: string[]): string {
  for (const text of texts) {
    const name = cleaned(text)
    if (newNameProblem(name) === undefined) return name
  }
  return `${cleaned(texts[0] ?? '')}-server`.replace(/^-/, '')
}

/**
 * The name for an entry of a registry: `weather` for `io.github.ada/weather`. If that is reserved, the last part of the
 * namespace is prepended.
 */
export function nameOfEntry (name: string): string {
  const [namespace = '', own = ''] = name.split('/', 2)
  return localName(own, `${namespace.split('.').at(-1) ?? ''}-${own}`)
}
