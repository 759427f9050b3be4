import type { ServerConfig } from '../../../schemas/server.ts'
import type { RegistryTransport } from '../../../schemas/server-json.ts'
import { quoteText, type Inputs } from './inputs.ts'
import { Unusable } from './unusable.ts'

const types = ['streamable-http', 'sse'] as const

/** The config that connects to a remote. @throws Unusable with the reason why there is none */
export function fromRemote ({ type: given, url, headers = [], variables = {} }: RegistryTransport, inputs: Inputs): ServerConfig {
  const type = types.find((each) => each === given)
  if (!type) throw new Unusable(`the transport ${quoteText(given)} is not known here`)
  if (url === undefined) throw new Unusable('it has no address')
  const address = inputs.fill({ value: url, variables }, 'url', 'url', true) ?? ''
  if (!/^https?:\/\//i.test(address) && !address.startsWith('${')) throw new Unusable(`${quoteText(url)} is not an http or https address`)
  const values: Record<string, string> = {}
  for (const header of headers) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header.name) || header.name === '__proto__') {
      throw new Unusable(`${quoteText(header.name)} cannot be the name of a header`)
    }
    // Variables of the address may stand in headers as well.
    const value = inputs.fill({ ...header, variables: { ...variables, ...header.variables } }, 'header', header.name)
    if (value !== undefined) values[header.name] = value
  }
  return { type, url: address, ...(Object.keys(values).length > 0 && { headers: values }) }
}
