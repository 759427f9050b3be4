import type { RequiredInput, OptionalInput } from '../../../schemas/catalogues.ts'
import { newNameProblem } from '../../../schemas/names.ts'
import type { RegistryInput, RegistryInputWithVariables } from '../../../schemas/server-json.ts'
import { containsMask } from '../../base/secrets/index.ts'
import { uniqueName } from '../unique-name.ts'

/** The error for a catalogue entry from which no config can be made. The message is a clause with the reason. */
export class UnusableEntryError extends Error {
  override readonly name = 'UnusableEntryError'
}

type Place = OptionalInput['place'] & ('env' | 'header' | 'argument' | 'url')

const bracesPattern = /\{([A-Za-z_][A-Za-z0-9_.-]*)\}/g
/**
 * A character that marks the position of a placeholder while a value is composed. The texts of entries cannot contain
 * it, since control characters are rejected.
 */
const mark = '\u0000'

/**
 * Composes the values of one config from the inputs of a registry entry, and collects the inputs that the user must
 * fill in. A value that the user must fill in becomes a placeholder, `${NAME}`. The gateway expands `${NAME}` in
 * configs from its environment, and the texts of entries are untrusted. So the texts must not contain `${NAME}`, and
 * the names of placeholders begin with `INPUT_` and the server's name, unlike the names of environment variables.
 */
export class ConfigInputResolver {
  /** The inputs with a placeholder in the config. */
  readonly requiredInputs: RequiredInput[] = []
  /** The inputs that the config omits. */
  readonly optionalInputs: OptionalInput[] = []
  readonly #prefix: string
  /** The keys of placeholders, by place and title. */
  readonly #keys = new Map<string, string>()

  /** @param server the name of the server that is made from the entry */
  constructor (server: string) {
    this.#prefix = `INPUT_${toUpperName(server)}_`
  }

  /**
   * Returns the value for an input of an entry, which may contain placeholders.
   * @param title the name of the input, as shown to the user
   * @param isNeeded whether the config needs the value, even if the entry does not mark the input as required
   * @returns undefined if the input is omitted, since it is optional and has no value
   * @throws UnusableEntryError
   */
  resolveInput (input: RegistryInputWithVariables, place: Place, title: string, isNeeded = false): string | undefined {
    const { value, default: defaultValue, isRequired = false } = input
    if (value !== undefined) return this.#composeValue(value, input, place, title, isNeeded)
    if (defaultValue !== undefined) return requireSafeConfigText(defaultValue, title)
    if (!isRequired && !isNeeded) return this.#omit(input, place, title)
    return `\${${this.#placeholderKey(input, place, title)}}`
  }

  /**
   * Replaces the variables in braces in a value, each by its own value or by a placeholder.
   * @returns undefined if the input is omitted, since it is optional and one of its variables has no value
   * @throws UnusableEntryError, for example for an undeclared variable in a URL
   */
  #composeValue (
    value: string, input: RegistryInputWithVariables, place: Place, title: string, isNeeded: boolean
  ): string | undefined {
    const { isRequired = false, variables = {} } = input
    const open: Array<[string, RegistryInput]> = []
    const text = checkControlCharacters(value, title).replace(bracesPattern, (written, name: string) => {
      const variable = Object.hasOwn(variables, name) ? variables[name] : undefined
      if (variable === undefined) {
        if (place === 'url') {
          throw new UnusableEntryError(`its address contains {${name}}, which it does not define`)
        }
        return written
      }
      const given = variable.value ?? variable.default
      if (given !== undefined) return checkControlCharacters(given, name)
      open.push([name, variable])
      return mark
    })
    const mayBeEmpty = !isRequired && !isNeeded && open.some(([, variable]) => variable.isRequired !== true)
    if (mayBeEmpty) return this.#omit(input, place, title)
    checkReferences(text, title)
    return text.replaceAll(mark, () => {
      const [name, variable] = open.shift() ?? ['', {}]
      return `\${${this.#placeholderKey({ isSecret: input.isSecret, ...variable }, place, name)}}`
    })
  }

  /** Records that the config omits an input. */
  #omit ({ description, isSecret = false }: RegistryInput, place: Place, title: string): undefined {
    this.optionalInputs.push({ title, place, description, sensitive: isSecret })
  }

  /** Returns the key of the placeholder for an input. Inputs with the same title in the same place share one. */
  #placeholderKey (
    { description, isSecret = false, format, placeholder, choices }: RegistryInput, place: Place, title: string
  ): string {
    const id = `${place}/${title}`
    const known = this.#keys.get(id)
    if (known !== undefined) return known
    const key = uniqueName(new Set(this.#keys.values()), `${this.#prefix}${toUpperName(title)}`, '_')
    this.#keys.set(id, key)
    this.requiredInputs.push({ key, title, description, sensitive: isSecret, format, placeholder, choices })
    return key
  }
}

const toUpperName = (text: string): string =>
  text.toUpperCase().replace(/[^A-Z0-9]+/g, '_').replace(/^_+|_+$/g, '').slice(0, 64)

/** Checks an untrusted text for use in a config. @returns the text @throws UnusableEntryError */
export const requireSafeConfigText = (text: string, title: string): string =>
  checkReferences(checkControlCharacters(text, title), title)

/** Checks that an untrusted text has no control characters. @returns the text @throws UnusableEntryError */
function checkControlCharacters (text: string, title: string): string {
  if (/\p{Cc}/u.test(text)) {
    throw new UnusableEntryError(`the value of ${quoteText(title)} contains a control character`)
  }
  return text
}

/** Checks that an untrusted text is no mask and refers to no variable. @returns the text @throws UnusableEntryError */
function checkReferences (text: string, title: string): string {
  if (/\$\{[A-Za-z_]/.test(text)) {
    throw new UnusableEntryError(
      `the value of ${quoteText(title)} refers to a variable of this gateway's environment ($\{…})`
    )
  }
  if (containsMask(text)) throw new UnusableEntryError(`the value of ${quoteText(title)} looks like a masked secret`)
  return text
}

/** Quotes an untrusted text for a message, truncated to 80 characters. */
export const quoteText = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)

const cleanName = (text: string): string =>
  text.normalize('NFC').replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[._-]+|[._-]+$/g, '').slice(0, 64)

/** Returns a valid server name, made from the first suitable text; if none is suitable, adds `-server` to the first. */
export function toValidServerName (...texts: string[]): string {
  for (const text of texts) {
    const name = cleanName(text)
    if (newNameProblem(name) === undefined) return name
  }
  return `${cleanName(texts[0] ?? '')}-server`.replace(/^-/, '')
}

/**
 * Returns the name for a server from a registry entry: `weather` for `io.github.ada/weather`. If that name is reserved,
 * the last part of the namespace is prepended: `ada-weather`.
 */
export function serverNameOfEntry (name: string): string {
  const [namespace = '', own = ''] = name.split('/', 2)
  return toValidServerName(own, `${namespace.split('.').at(-1) ?? ''}-${own}`)
}
