import type { AdapterPayload } from 'oidc-provider'
import type { OAuthClient, Clients } from '../../../../db/ports.ts'

/**
 * A client in the library's terms. Its secret is known as a hash only, with which the library compares (`provider.ts`). Its scopes are not
 * told: they follow the settings, and the library would refuse the whole client for one that it does not know.
 */
export async function findClient (clients: Pick<Clients, 'find'>, id: string): Promise<AdapterPayload | undefined> {
  const client = await clients.find(id)
  return client && toPayload(client)
}

function toPayload (client: OAuthClient): AdapterPayload {
  const { clientId, secretHash, name, redirectUris, grantTypes, clientUri, logoUri, policyUri, tosUri } = client
  // An entry of a settings file does not say how its client authenticates.
  const method = client.tokenEndpointAuthMethod ?? (secretHash === undefined ? 'none' : 'client_secret_post')
  return {
    client_id: clientId,
    ...(secretHash === undefined ? {} : { client_secret: secretHash }),
    client_name: name,
    redirect_uris: [...redirectUris],
    grant_types: [...grantTypes],
    response_types: ['code'],
    token_endpoint_auth_method: method as 'none',
    application_type: 'native',
    client_uri: clientUri,
    logo_uri: logoUri,
    policy_uri: policyUri,
    tos_uri: tosUri
  }
}
