import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { PageData } from '../../plugins/management/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import {
  type SubmittedForm, formFieldValues, noticeOfAnswer, parseJsonObjectOrProblem, createPageRouter, formFieldText,
  type Visit
} from './page.ts'
import { asksForOtherChoices, maxShownChoices, shownChoicesOf } from './shown-choices.ts'
import { commandOrAddressOf } from './server-states.ts'

/** The members that the page reads from a pasted template. Their types are expected, but not checked. */
interface PastedTemplate {
  readonly servers?: Readonly<Record<string, Record<string, unknown>>>
  readonly groups?: ReadonlyArray<{ readonly name?: unknown }>
  readonly requiredEnvVars?: readonly string[]
}

/** The page that exports and imports templates. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, groups, servers } = app
  const { page, form } = createPageRouter(app)
  const choices = ({ principal, form }: Visit): PageData => ({
    title: 'Templates',
    groups: groups.list(principal).map(({ id, name }) =>
      ({ value: id, text: name, isChosen: formFieldValues(form.groupIds).includes(id) })),
    ...serversOf(servers.names(principal), form),
    variables: []
  })
  page('templates', { title: 'Templates', isInNav: true }, choices)

  form('/templates/export', {
    effect: 'change', showAgain: (visit) => ({ page: 'templates', data: choices(visit) })
  }, async (visit) => {
    const { request, reply, form: sent } = visit
    if (asksForOtherChoices(sent)) {
      kit.renderer.send(reply, 'templates', { ...choices(visit), values: sent })
      return undefined
    }
    const [groupIds, serverNames] = [formFieldValues(sent.groupIds), formFieldValues(sent.serverNames)]
    const name = formFieldText(sent.name).trim()
    const { data } = await kit.api.ask(request, 'POST', '/templates/export', {
      name, ...groupIds.length > 0 && { groupIds }, ...serverNames.length > 0 && { serverNames }
    })
    const file = `${name.replace(/[^\w-]+/g, '-').slice(0, 60) || 'template'}.json`
    void reply.type('application/json').header('content-disposition', `attachment; filename="${file}"`)
      .send(app.export.toText(data as object))
    return undefined
  })

  form('/templates/import', {
    effect: 'change', showAgain: (visit) => ({ page: 'templates', data: choices(visit) })
  }, async (visit) => {
    const { principal, request, reply, form: sent } = visit
    const text = formFieldText(sent.template)
    const show = (more: object, status = 200): undefined => {
      kit.renderer.send(reply, 'templates', { ...choices(visit), values: { template: text }, ...more }, status)
      return undefined
    }
    const template = readTemplate(text)
    if (typeof template === 'string') return show({ errors: { template } }, 400)
    if (formFieldText(sent.do) !== 'import') {
      return show({ preview: previewOf(app, principal, template), variables: template.requiredEnvVars ?? [] })
    }
    // The text itself is sent, since a parsed object would not keep servers whose names are numbers in order.
    const done = await kit.api.ask(request, 'POST', '/templates/import', text)
    const { details } = done.data as {
      details: ReadonlyArray<{ type: string, name: string, action: string, message?: string }>
    }
    if (details.every(({ action, message }) => action === 'created' && message === undefined)) {
      return { to: '/servers', notice: noticeOfAnswer(done) }
    }
    return show({
      preview: details.map(({ type, name, action, message }) => ({
        name, kind: type, outcome: outcomes[action] ?? action, [action === 'failed' ? 'problem' : 'remark']: message
      })),
      isDone: true,
      notice: noticeOfAnswer(done),
      variables: []
    })
  })
}
export default routes

/** Returns the data of the list from which the user selects servers to export. */
function serversOf (all: readonly string[], form: SubmittedForm): object {
  const chosen = new Set(formFieldValues(form.serverNames))
  const find = formFieldText(form.find)
  const { names, kept, rest } = shownChoicesOf(all, chosen, find)
  return {
    find,
    rest,
    kept,
    isLong: all.length > maxShownChoices,
    servers: names.map((name) => ({ value: name, text: name, isChosen: chosen.has(name) }))
  }
}

const outcomes: Readonly<Record<string, string>> = {
  created: 'added', skipped: 'already exists', failed: 'not added'
}

/** Parses a template. @returns the template or an error message */
function readTemplate (text: string): PastedTemplate & object | string {
  const template = parseJsonObjectOrProblem(text, 'A template is')
  return typeof template === 'string' || 'servers' in template || 'groups' in template
    ? template
    : 'This is not a template: it has neither "servers" nor "groups".'
}

/** Returns what an import would do with each server and group. */
function previewOf ({ servers, groups }: FastifyInstance, principal: Principal, template: PastedTemplate): object[] {
  const known = new Set(servers.names(principal))
  const knownGroups = new Set(groups.list(principal).map(({ name }) => name))
  const configs = typeof template.servers === 'object' ? template.servers : {}
  const sentGroups = Array.isArray(template.groups) ? template.groups as ReadonlyArray<{ name?: unknown }> : []
  const outcome = (isKnown: boolean): string => isKnown ? 'already exists, stays unchanged' : 'will be added'
  return [
    ...Object.entries(configs).map(([name, config]) =>
      (
        {
          name,
          kind: 'server',
          target: commandOrAddressOf({ config: config ?? {} }),
          outcome: outcome(known.has(name))
        }
      )),
    ...sentGroups.map(({ name }) => ({
      name: String(name), kind: 'group', outcome: outcome(knownGroups.has(String(name)))
    }))
  ]
}
