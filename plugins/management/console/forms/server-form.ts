import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../../protocol/json.ts'
import { OpenApiSecurity } from '../../../../schemas/openapi-upstream.ts'
import { ServerConfig } from '../../../../schemas/server.ts'
import { transports, transportTypes, type TransportType } from '../../../../schemas/transports.ts'
import { type Draft, type FieldErrors, type FormField, hasFilledFields, fieldNameOf } from './draft.ts'
import { namesIn } from './names.ts'
import { argumentsFieldName, SchemaForm } from './schema-form.ts'

type Config = Readonly<Record<string, unknown>>
type Member = keyof typeof ServerConfig.properties

/**
 * The members of a config that only some types of servers have, by how the server is located. The form has two groups
 * of fields: `first`, and `more`, which is collapsed.
 */
const locationMembers = {
  command: { first: ['command', 'args', 'env', 'cwd'], more: ['startOnDemand', 'idleTimeoutMs'] },
  address: {
    first: ['url', 'headers'],
    more: ['passthroughHeaders', 'oauth', 'proxy', 'enableKeepAlive', 'keepAliveInterval']
  },
  description: {
    first: ['openapi', 'url', 'headers'],
    more: ['passthroughHeaders', 'proxy', 'enableKeepAlive', 'keepAliveInterval']
  }
} as const satisfies Readonly<Record<string, Record<'first' | 'more', readonly Member[]>>>

/**
 * The members that servers of any type may have: `last` at the end of the first group, `more` in the second. `enabled`
 * and the overrides have their own forms; the gateway sets the remaining members.
 */
const commonMembers = {
  last: ['description', 'visibility', 'sharedWithUsers'], more: ['isolation', 'pin', 'options']
} as const

/**
 * The members that are lists of names. The field of one list item may contain several names; empty names are dropped.
 */
const nameLists: readonly string[] = ['sharedWithUsers', 'passthroughHeaders']

/** The members of `openapi.security` that repeat what its other members express, and so get no fields. */
const repeatedMembers = ['apiKey', 'http', 'oauth2', 'openIdConnect'] as const

/**
 * A form for configs of servers of one type. Members of a config that have no field are kept, at any depth.
 */
export class ServerForm {
  readonly type: TransportType
  readonly #isAdmin: boolean
  readonly #schema: { readonly properties: Readonly<Record<string, unknown>>, readonly required: readonly string[] }
  readonly #form: SchemaForm
  readonly #more: ReadonlySet<string>

  /**
   * @param config a config of the type that the form is for
   * @param isAdmin whether the form has the field `owner`
   */
  constructor (config: Config, isAdmin: boolean) {
    const type = formTypeOf(config)
    const { first, more } = locationMembers[transports[type].locatedBy]
    const rest: readonly Member[] = [...isAdmin ? ['owner'] as const : [], ...commonMembers.more, ...more]
    const shown: readonly Member[] = ['type', ...first, ...commonMembers.last, ...rest]
    this.type = type
    this.#isAdmin = isAdmin
    this.#more = new Set(rest.map((name) => fieldNameOf(argumentsFieldName, name)))
    this.#schema = {
      properties: Object.fromEntries(shown.map((name) => [name, schemaOf(name)])),
      required: first.filter((name) => name === 'command' || (name === 'url' && type !== 'openapi'))
    }
    this.#form = new SchemaForm(this.#schema)
  }

  /** Returns the fields in two groups: `first`, and `more`, which the page shows collapsed. */
  fields (draft: Draft): { first: FormField[], more: FormField[] } {
    const fields = this.#form.fields(draft).map((field) => toShown(field, draft))
    return {
      first: fields.filter(({ name }) => !this.#more.has(name)), more: fields.filter(({ name }) => this.#more.has(name))
    }
  }

  /** Converts a config to a draft; undefined if the form cannot represent the config without loss. */
  toDraft (config: Config): Draft | undefined {
    const draft = this.#form.toDraft(config)
    const read = this.#form.read(draft)
    return 'json' in read && isSame(this.#merged(read.json, config), config) ? draft : undefined
  }

  /** Returns the draft after a click on the button of a list or of alternatives, as `SchemaForm.applyButton` does. */
  applyButton (draft: Draft, button: string): Draft { return this.#form.applyButton(draft, button) }

  /**
   * Converts a submitted draft to a config.
   * @param base the config that provides the members without fields
   * @param stored the stored config: if the type has changed, members of the former type are dropped
   */
  read (draft: Draft, base: Config, stored: Config): { readonly config: Config } | { readonly errors: FieldErrors } {
    const read = this.#form.read(draft)
    if ('errors' in read) return read
    const config = withNames(this.#merged(read.json, base))
    const type = formTypeOf(config)
    return { config: type === formTypeOf(stored) ? config : withoutOtherTypes(config, type) }
  }

  /**
   * Returns the form for the type that is selected in a draft, with the draft for it. The returned `base` contains the
   * values of the given draft, so that they are still there if the former type is selected again.
   */
  switchType (draft: Draft, base: Config): { readonly form: ServerForm, readonly draft: Draft, readonly base: Config } {
    const read = this.#form.read(draft)
    const all = 'errors' in read ? base : this.#merged(read.json, base)
    const type = transportTypes[Number(draft[fieldNameOf(argumentsFieldName, 'type')] || NaN)]
    const form = new ServerForm(type === undefined ? all : { type }, this.#isAdmin)
    return { form, draft: form.type === this.type ? draft : { ...form.#form.toDraft(all), ...draft }, base: all }
  }

  #merged (json: string, base: Config): Config { return replaceTyped(base, JSON.parse(json) as Config, this.#schema) }

  /**
   * Converts messages by the paths of config members, such as `config.env.HOME`, to messages by field names. A message
   * about the config as a whole is shown at the first member that it names in quotes.
   */
  toFieldErrors (fields: FieldErrors, draft: Draft): FieldErrors {
    const shown = (path: string): string | undefined => this.#fieldOf(path, draft)
    return Object.fromEntries(Object.entries(fields).map(([path, text]) => {
      const quoted = [...text.matchAll(/"([\w.]{1,100})"/g)].map(([, member = '']) => member)
      const member = path.replace(/^config(?:\.|$)/, '')
      const places = member === '' ? quoted : [member]
      return [places.map(shown).find((field) => field !== undefined) ?? '', member === '' ? text : `${member}: ${text}`]
    }))
  }

  /** Returns the name of the field for a member of the config; undefined if the form has none. */
  #fieldOf (path: string, draft: Draft): string | undefined {
    const [member = '', ...rest] = path.split('.')
    if (!Object.hasOwn(this.#schema.properties, member)) return undefined
    const root = fieldNameOf(argumentsFieldName, member)
    // For an entry of a map such as `env`: the field of its name. The error is shown at the field of its value.
    const ofEntry = Object.keys(draft).find((name) => name.startsWith(`${root}/`) && name.endsWith('/name') &&
      draft[name] === rest.join('.'))
    const names = fieldNamesIn(this.#form.fields(draft))
    // The innermost field that contains the member.
    const inner = rest.reduce((name, part) => names.has(fieldNameOf(name, part)) ? fieldNameOf(name, part) : name, root)
    return ofEntry?.replace(/name$/, 'value') ?? inner
  }
}

/** Returns the type of the form for a config. */
const formTypeOf = ({ type, command, openapi }: Config): TransportType =>
  transportTypes.find((each) => each === type) ??
    (openapi !== undefined ? 'openapi' : command !== undefined ? 'stdio' : 'streamable-http')

/** Returns a config without the members that only other types of servers have. */
function withoutOtherTypes (config: Config, type: TransportType): Config {
  const { first, more } = locationMembers[transports[type].locatedBy]
  const own = new Set<string>([...first, ...more])
  const others = new Set<string>(Object.values(locationMembers).flatMap((each) => [...each.first, ...each.more]))
  return Object.fromEntries(Object.entries(config).filter(([name]) => own.has(name) || !others.has(name)))
}

/** Returns the part of a config member's schema that the form shows. */
function schemaOf (name: Member): unknown {
  const schema = ServerConfig.properties[name]
  if (name !== 'openapi') return schema
  const { schema: _description, ...openapi } = ServerConfig.properties.openapi.properties
  const security = Object.fromEntries(Object.entries(OpenApiSecurity.properties)
    .filter(([each]) => !repeatedMembers.some((other) => other === each)))
  return { ...schema, properties: { ...openapi, security: { ...openapi.security, properties: security } } }
}

/** Returns a field as the page shows it: optional objects without values are collapsed, and hints have no backticks. */
const toShown = (field: FormField, draft: Draft): FormField => ({
  ...field,
  ...field.hint !== undefined && { hint: field.hint.replaceAll('`', '') },
  ...field.kind === 'object' && !field.isRequired && { isFolded: !hasFilledFields(draft, field.name) },
  ...field.fields && { fields: field.fields.map((each) => toShown(each, draft)) }
})

/** Returns the names of all fields, including nested ones. */
const fieldNamesIn = (fields: readonly FormField[]): Set<string> =>
  new Set(fields.flatMap((field) => [field.name, ...fieldNamesIn([...field.fields ?? [], ...field.items ?? []])]))

/**
 * Returns a config in which the typed values replace all members that have fields, at each level. Other members are
 * kept.
 * @param properties the properties of the schema that the form is made from
 */
function replaceTyped (base: Config, typed: Config, { properties }: { readonly properties: Config }): Config {
  const result: Record<string, unknown> = { ...base }
  for (const [name, schema] of Object.entries(properties)) {
    const [former, value] = [base[name], typed[name]]
    const inner = isObject(schema) && isObject(schema.properties)
      ? replaceTyped(isObject(former) ? former : {}, isObject(value) ? value : {}, { properties: schema.properties })
      : value
    const isEmpty = value === undefined && isObject(inner) && Object.keys(inner).length === 0
    if (inner === undefined || isEmpty) delete result[name]
    else result[name] = inner
  }
  return result
}

/** Returns a config whose `nameLists` have one name per item, without empty items. */
const withNames = (config: Config): Config =>
  Object.fromEntries(Object.entries(config).flatMap(([member, value]) => {
    const isNameList = nameLists.includes(member) && Array.isArray(value)
    if (!isNameList) return [[member, isObject(value) ? withNames(value) : value]]
    const names = namesIn(value.join('\n'))
    return names.length === 0 ? [] : [[member, names]]
  }))

/** Whether two configs are equal, ignoring empty members. */
const isSame = (one: Config, other: Config): boolean => isDeepStrictEqual(withoutEmpty(one), withoutEmpty(other))

function withoutEmpty (value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutEmpty(each)] as const)
    .filter(([, each]) => each !== '' && each !== undefined &&
      !(typeof each === 'object' && each !== null && Object.keys(each).length === 0)))
}
