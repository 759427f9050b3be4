import type { FastifyPluginAsync } from 'fastify'
import { namesHint, namesIn } from '../../plugins/management/index.ts'
import type { Guard } from '../../schemas/guards.ts'
import { addOrderedEntityPages, toSelectOptions } from './ordered.ts'
import { type SubmittedForm, formFieldValues, toNumberOrText, formFieldText } from './page.ts'

const sides = [
  { value: 'both', text: 'Arguments and results' },
  { value: 'arguments', text: 'Arguments' },
  { value: 'results', text: 'Results' }
]
const kinds = [
  { value: 'secrets', text: 'Secrets', hint: 'Tokens, private keys, passwords in addresses', plural: 'secrets' },
  { value: 'email', text: 'E-mail addresses', plural: 'e-mail addresses' },
  { value: 'card', text: 'Payment card numbers', plural: 'cards' },
  { value: 'iban', text: 'Bank accounts (IBAN)', plural: 'IBANs' },
  { value: 'phone', text: 'Phone numbers', plural: 'phone numbers' }
]
const actions = [
  { value: 'mask', text: 'Mask it', verb: 'masks' },
  { value: 'refuse', text: 'Refuse the call', verb: 'refuses' },
  { value: 'flag', text: 'Only record it', verb: 'records' }
]
const webhookFallbacks = [{ value: 'deny', text: 'Refuse the call' }, { value: 'allow', text: 'Let the call through' }]

/** The pages that list, add, change, reorder and remove content guards. */
const routes: FastifyPluginAsync = async (app) => {
  addOrderedEntityPages(app, {
    page: 'guards',
    path: '/guards',
    entries: app.guards,
    verbPhrase: 'checks calls',
    rowOf: (guard) => ({ about: aboutOf(guard), effect: effectOf(guard) }),
    fieldsOf,
    toBody: toGuard
  })
}
export default routes

function aboutOf ({ on, servers = [], tools = [] }: Guard): string {
  const side = sides.find(({ value }) => value === on)?.text ?? on
  const where = servers.length === 0 ? 'all servers' : servers.join(', ')
  return tools.length === 0 ? `${side} of ${where}` : `${side} of ${tools.join(', ')} (${where})`
}

function effectOf ({ detect = [], action, webhook }: Guard): { text: string, under?: string } {
  const found = kinds.filter(({ value }) => detect.some((each) => each === value)).map(({ plural }) => plural)
  const searches = `${actions.find(({ value }) => value === action)?.verb ?? action} ${found.join(', ')}`
  const asks = webhook && `asks ${URL.canParse(webhook.url) ? new URL(webhook.url).host : webhook.url}`
  return found.length === 0 ? { text: asks ?? '' } : { text: searches, under: asks }
}

const fieldsOf = ({ name, on, servers, tools, detect = [], action, webhook }: Partial<Guard>): object[] => [
  { name: 'name', label: 'Name', required: true, value: name },
  { name: 'on', label: 'Checks', type: 'select', options: toSelectOptions(sides, on) },
  {
    name: 'servers',
    label: 'Servers',
    type: 'textarea',
    rows: 2,
    hint: `Names ${namesHint}. Leave empty for all.`,
    value: servers?.join('\n')
  },
  {
    name: 'tools',
    label: 'Tools',
    type: 'textarea',
    rows: 2,
    hint: `Names on the server, ${namesHint}. Leave empty for all, including prompts and resources.`,
    value: tools?.join('\n')
  },
  {
    name: 'detect',
    label: 'Looks for',
    type: 'checkbox',
    options: kinds.map(({ value, text, hint }) =>
      ({ value, text, hint, isChosen: detect.some((each) => each === value) }))
  },
  { name: 'action', label: 'If it finds something', type: 'select', options: toSelectOptions(actions, action) },
  {
    name: 'webhook.url',
    heading: 'Webhook',
    label: 'Address',
    hint: 'Asked about each call after the search; it can change or refuse the call. Leave empty for none.',
    value: webhook?.url
  },
  {
    name: 'webhook.secret',
    label: 'Secret',
    type: 'password',
    isKept: true,
    autocomplete: 'new-password',
    hint: 'Signs the requests (Standard Webhooks).',
    value: webhook?.secret
  },
  {
    name: 'webhook.timeoutMs',
    label: 'Timeout in ms',
    type: 'number',
    hint: 'Default: 2,000.',
    value: webhook?.timeoutMs
  },
  {
    name: 'webhook.whenAway',
    label: 'If it does not answer',
    type: 'select',
    options: toSelectOptions(webhookFallbacks, webhook?.whenAway)
  }
]

/**
 * Returns the guard in a submitted form, as a request body for the API. If the form contains a new secret for the
 * webhook but no URL, the body contains the webhook, so that the API reports the missing URL.
 * @param former the guard to replace, if any
 */
function toGuard (sent: SubmittedForm, former?: Guard): object {
  const [servers, tools] = (['servers', 'tools'] as const).map((member) =>
    namesIn(formFieldText(sent[member]), true, former?.[member]))
  const detect = formFieldValues(sent.detect)
  const [url, secret] = [formFieldText(sent['webhook.url']).trim(), formFieldText(sent['webhook.secret'])]
  const timeout = formFieldText(sent['webhook.timeoutMs']).trim()
  return {
    name: formFieldText(sent.name),
    on: formFieldText(sent.on),
    ...servers?.length !== 0 && { servers },
    ...tools?.length !== 0 && { tools },
    ...detect.length > 0 && { detect },
    action: formFieldText(sent.action),
    ...(url !== '' || (secret !== '' && secret !== former?.webhook?.secret)) && {
      webhook: {
        url,
        secret,
        whenAway: formFieldText(sent['webhook.whenAway']),
        ...timeout !== '' && { timeoutMs: toNumberOrText(timeout) }
      }
    }
  }
}
