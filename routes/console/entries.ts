import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  type ApiAnswer, ApiError, newServerNameProblem, type Notice, parseIfJson
} from '../../plugins/management/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { type CharacterBudget, fillVariables, newCharacterBudget, typedValuesOf } from './fill-variables.ts'
import { type SubmittedForm, formFieldText } from './page.ts'
import { serverPageUrl, commandOrAddressOf, transportOf } from './server-states.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/** A value that the user fills in. It replaces the variable `${<key>}` in the config. */
export interface VariableToFill {
  readonly key: string
  readonly title?: string
  readonly description?: string
  readonly choices?: readonly string[]
  /** Whether the value is a list, with one element per line. */
  readonly multiple?: boolean
  readonly isSecret?: boolean
  /** Whether a value is required. If not, and none is given, the gateway's environment supplies the value. */
  readonly isNeeded?: boolean
}

/** A server that the user can add, as an entry of the form. */
export interface ServerToAdd {
  readonly index: number
  readonly name: string
  /** The config as JSON text. */
  readonly config: string
  readonly isChosen: boolean
  readonly remarks: readonly string[]
  /** The way to run the server, such as `npm @example/server`, if there are several. */
  readonly from?: string
  /** Descriptions of optional inputs of the server, which the config does not contain. */
  readonly options?: readonly string[]
  readonly variables?: readonly VariableToFill[]
  /** The values of the variables, by the names of their form fields. */
  readonly values?: Readonly<Record<string, string>>
  readonly problem?: string
  readonly tested?: { readonly isOk: boolean, readonly text: string }
}

/** The catalogue entry or bundle that the servers come from. `back`: the URL of the page to choose another one. */
export interface AddServerSource { readonly title: string, readonly text: string, readonly back: string }

/** Error messages by the name of the form field. */
type Errors = Readonly<Record<string, string>>
/** The configs by the `index` of their entries. */
type Configs = ReadonlyMap<number, Record<string, unknown>>

export const titleOfAddServerPage = 'Add a server'

/**
 * Returns the tabs of the page "Add a server", which link to the ways to add one.
 * @param current the last part of the current page's URL; `''` for the page to paste a text
 */
export function tabsOfAddServerPage (
  { kit: { base } }: FastifyInstance, principal: Principal | null, current: string
): object[] {
  const tabs = [
    ['', 'Paste'], ['market', 'Market'], ['registry', 'Registry'], ['cloud', 'Cloud'],
    // The API accepts bundles only from admins.
    ...principal?.isAdmin === true ? [['bundle', 'Bundle']] : []
  ]
  return tabs.map(([name = '', text]) =>
    ({ href: `${base}/add-a-server${name === '' ? '' : `/${name}`}`, title: text, isCurrent: name === current }))
}

/** Responds with the page "Add a server"; with status 400 if there are `errors`. `text`: the pasted text. */
export function showServersToAdd (
  app: FastifyInstance,
  reply: FastifyReply,
  { entries, errors = {}, notice, text, source }: {
    entries?: readonly ServerToAdd[] | undefined,
    errors?: Errors,
    notice?: Notice,
    text?: string,
    source?: AddServerSource | undefined
  }
): FastifyReply {
  const budget = newCharacterBudget()
  return app.kit.renderer.send(reply, 'add-a-server', {
    title: titleOfAddServerPage,
    tabs: tabsOfAddServerPage(app, reply.request.principal, source?.back.split('/').at(-1) ?? ''),
    ...notice && { notice },
    ...source && { source, sourceText: JSON.stringify(source) },
    values: { text },
    // Names that are already taken are reported at once, before anything is stored.
    errors: { ...nameProblemsOf(app, reply, entries), ...errors },
    ...entries && { entries: entries.map((entry) => toPageData(entry, budget)) }
  }, Object.keys(errors).length > 0 ? 400 : 200)
}

/** Returns the reasons why the names of entries cannot be used, by form field. */
function nameProblemsOf (
  { settings }: FastifyInstance, { request: { principal } }: FastifyReply, entries: readonly ServerToAdd[] = []
): Errors {
  if (!principal) return {}
  return Object.fromEntries(entries.flatMap(({ index, name, problem }): Array<[string, string]> => {
    const ofName = newServerNameProblem(settings.current, principal, name)
    return ofName === undefined || problem !== undefined ? [] : [[`name-${index}`, ofName]]
  }))
}

/**
 * Tests or stores the selected servers of a submitted form, depending on the button. Responds with the same page, or
 * redirects to the stored servers if all were stored.
 */
export async function testOrStoreServers (
  app: FastifyInstance, request: FastifyRequest, reply: FastifyReply, form: SubmittedForm
): Promise<FastifyReply> {
  const { kit } = app
  const entries = entriesIn(form)
  const common = { text: formFieldText(form.text), source: sourceIn(kit, formFieldText(form.source)) }
  const { configs, errors } = parseEntries(entries)
  if (Object.keys(errors).length > 0) return showServersToAdd(app, reply, { ...common, entries, errors })
  if (!entries.some(({ isChosen }) => isChosen)) {
    return showServersToAdd(app, reply, { ...common, entries, errors: { '': 'Choose a server first.' } })
  }
  if (formFieldText(form.do) === 'test') {
    return showServersToAdd(app, reply, { ...common, entries: await testEntries(app, request, entries, configs) })
  }
  const { stored, remaining, problems } = await storeEntries(app, request, entries, configs)
  const names = stored.map((name) => JSON.stringify(name)).join(', ')
  const notice = { kind: 'done', text: `Added: ${names}. Connecting now.` } as const
  if (remaining.some(({ isChosen }) => isChosen)) {
    return showServersToAdd(app, reply, {
      ...common, entries: remaining, errors: problems, ...stored.length > 0 && { notice }
    })
  }
  kit.notify(reply, notice)
  const [first = ''] = stored
  return await reply.redirect(stored.length === 1 ? serverPageUrl(kit.base, first) : `${kit.base}/servers`, 303)
}

/** Parses the hidden form field with the source of the entries; undefined if invalid. `back` stays in the console. */
function sourceIn ({ consolePathOf }: FastifyInstance['kit'], text: string): AddServerSource | undefined {
  const { title: name, text: about, back } = objectOf(text)
  const isSource = typeof name === 'string' && typeof about === 'string' && typeof back === 'string'
  return isSource ? { title: name, text: about, back: consolePathOf(back) } : undefined
}

/** Returns the entries in a submitted form. */
function entriesIn (form: SubmittedForm): ServerToAdd[] {
  const chosen = new Set([form.chosen ?? []].flat())
  return Object.keys(form).flatMap((field) => /^name-(\d{1,4})$/.exec(field)?.[1] ?? []).map((index) => {
    const variables = variablesIn(formFieldText(form[`variables-${index}`]))
    return {
      index: Number(index),
      name: formFieldText(form[`name-${index}`]).trim(),
      config: formFieldText(form[`config-${index}`]),
      isChosen: chosen.has(index),
      remarks: [],
      variables,
      values: Object.fromEntries(
        variables.map((_, at) => variableFieldName(index, at)).map((name) => [name, formFieldText(form[name])])
      )
    }
  })
}

/** Returns the name of the form field for the variable at position `at` (from 0) of the entry with this `index`. */
export const variableFieldName = (index: number | string, at: number): string => `value-${index}-${at}`

function variablesIn (text: string): VariableToFill[] {
  const { variables } = objectOf(text)
  return (Array.isArray(variables) ? variables as unknown[] : [])
    .filter(
      (each): each is VariableToFill & Record<string, unknown> => isPlainObject(each) && typeof each.key === 'string'
    )
}

function objectOf (text: string): Record<string, unknown> {
  const value = parseIfJson(text)
  return isPlainObject(value) ? value : {}
}

/**
 * Parses the configs of entries, and replaces the variables in them by the values that the user filled in.
 * @returns the configs, and the errors: for configs that are not JSON objects or are too large, and for missing values
 */
function parseEntries (
  entries: readonly ServerToAdd[], budget: CharacterBudget = newCharacterBudget()
): { configs: Configs, errors: Errors } {
  const configs = new Map<number, Record<string, unknown>>()
  const errors: Record<string, string> = {}
  for (const { index, config, isChosen, variables = [], values = {} } of entries) {
    try {
      const value: unknown = JSON.parse(config)
      if (isPlainObject(value)) {
        const typed = typedValuesOf(
          variables, variables.map((_, at) => values[variableFieldName(index, at)] ?? '')
        )
        configs.set(index, fillVariables(value, typed, budget) as Record<string, unknown>)
      } else errors[`config-${index}`] = 'A configuration is a JSON object.'
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      errors[`config-${index}`] = error instanceof SyntaxError ? `This is not JSON: ${reason}.` : `${reason}.`
    }
    for (const [at, { isNeeded }] of variables.entries()) {
      const field = variableFieldName(index, at)
      if (isChosen && isNeeded === true && values[field] === '') errors[field] = 'Enter a value.'
    }
  }
  return { configs, errors }
}

/** Returns the data of an entry for the page template. */
function toPageData (entry: ServerToAdd, budget: CharacterBudget): object {
  const { index, variables = [], values = {} } = entry
  const { configs } = parseEntries([entry], budget)
  const server = { config: configs.get(index) ?? {} }
  return {
    ...entry,
    transport: transportOf(server),
    target: commandOrAddressOf(server),
    variables: JSON.stringify({ variables }),
    fields: variables.map(({ key, title: label = key, description, choices, multiple, isSecret, isNeeded }, at) => {
      const value = values[variableFieldName(index, at)] ?? ''
      const hints = [
        description === undefined || /[.!?…]$/.test(description) ? description : `${description}.`,
        ...multiple === true ? ['One per line.'] : [],
        ...isNeeded === true ? [] : [`Leave empty to use the gateway’s environment variable ${key}.`]
      ]
      return {
        name: variableFieldName(index, at),
        label,
        hint: hints.filter((each) => each !== undefined).join(' '),
        value,
        ...multiple === true
          ? { type: 'textarea', rows: 3 }
          // The password stays in the form after a test, so that the user need not type it again to store the server.
          : isSecret === true && { type: 'password', isKept: true, autocomplete: 'new-password' },
        ...choices && {
          options: ['', ...choices].map((each) =>
            ({ value: each, text: each === '' ? 'not set' : each, isChosen: each === value }))
        }
      }
    })
  }
}

/** Returns whether a tested server can be used, and a sentence about the result, without its full stop. */
export function describeTestResult ({ message, data }: ApiAnswer): { readonly isOk: boolean, readonly text: string } {
  const { connected, status, error } = data as { connected: boolean, status: string, error: string | null }
  if (status === 'oauth_required') {
    return { isOk: true, text: 'It answers and requires a login: add it, then use “Log in” on its page' }
  }
  return { isOk: connected, text: [message, ...error === null ? [] : [error]].join(': ') }
}

/** Tests the connection to each selected server, without storing it. @returns all entries, with the results */
async function testEntries (
  { kit }: FastifyInstance, request: FastifyRequest, entries: readonly ServerToAdd[], configs: Configs
): Promise<ServerToAdd[]> {
  return await Promise.all(entries.map(async (entry) => {
    if (!entry.isChosen) return entry
    try {
      const config = configs.get(entry.index)
      const { message, data } = await kit.api.ask(request, 'POST', '/servers/test', { config })
      return { ...entry, tested: describeTestResult({ message, data }) }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { ...entry, problem: `${error.message}.` }
    }
  }))
}

/**
 * Stores the selected servers one by one. If one is rejected, the others are still stored.
 * @returns the names of the stored servers, the other entries, and the errors of rejected ones
 */
async function storeEntries (
  { kit }: FastifyInstance, request: FastifyRequest, entries: readonly ServerToAdd[], configs: Configs
): Promise<{ stored: string[], remaining: ServerToAdd[], problems: Errors }> {
  const stored: string[] = []
  const remaining: ServerToAdd[] = []
  const problems: Record<string, string> = {}
  for (const entry of entries) {
    const { index, name, isChosen } = entry
    if (!isChosen) {
      remaining.push(entry)
      continue
    }
    try {
      await kit.api.ask(request, 'POST', '/servers', { name, config: configs.get(index) })
      stored.push(name)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { '': problem, name: ofName, ...others } = error.fields
      remaining.push({ ...entry, ...problem !== undefined && { problem: `${problem}.` } })
      if (ofName !== undefined) problems[`name-${index}`] = ofName
      const ofConfig = Object.entries(others)
        .map(([field, sentence]) => `${field.replace(/^config\.?/, '') || 'The configuration'}: ${sentence}`)
      if (ofConfig.length > 0) problems[`config-${index}`] = ofConfig.join('\n')
    }
  }
  return { stored, remaining, problems }
}
