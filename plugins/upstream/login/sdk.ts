// The SDK's OAuth client, loaded at the first login: most gateways never need it.

import type * as auth from '@modelcontextprotocol/sdk/client/auth.js'
import type * as utils from '@modelcontextprotocol/sdk/shared/auth-utils.js'

type Sdk = typeof auth & typeof utils

let loading: Promise<Sdk> | undefined

export const loadSdk = async (): Promise<Sdk> => await (loading ??= (async () => {
  const [auth, utils] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/auth.js'),
    import('@modelcontextprotocol/sdk/shared/auth-utils.js')
  ])
  return { ...auth, ...utils }
})())
