CREATE TABLE "prompts" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "prompts_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "resources" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "resources_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "upstream_tokens" (
	"key" text PRIMARY KEY NOT NULL,
	"server" text NOT NULL,
	"holder" text NOT NULL,
	"version" text,
	"data" jsonb,
	"sealed" text,
	"claimed" timestamp with time zone,
	"changed" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "activity_hours" (
	"hour" bigint NOT NULL,
	"hash" text NOT NULL,
	"server" text NOT NULL,
	"tool" text NOT NULL,
	"status" text NOT NULL,
	"group" text,
	"username" text,
	"key_id" text,
	"key_name" text,
	"calls" bigint NOT NULL,
	"duration" double precision NOT NULL,
	CONSTRAINT "activity_hours_hour_hash_pk" PRIMARY KEY("hour","hash")
);
--> statement-breakpoint
CREATE TABLE "audit" (
	"number" bigserial PRIMARY KEY NOT NULL,
	"id" uuid NOT NULL,
	"timestamp" bigint NOT NULL,
	"username" text NOT NULL,
	"action" text NOT NULL,
	"entity" text NOT NULL,
	"name" text NOT NULL,
	"data" jsonb NOT NULL,
	"sealed" text,
	CONSTRAINT "audit_id_unique" UNIQUE("id")
);
--> statement-breakpoint
CREATE TABLE "social_accounts" (
	"id" text PRIMARY KEY NOT NULL,
	"provider_id" text NOT NULL,
	"account_id" text NOT NULL,
	"user_id" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_accounts_identity" UNIQUE("provider_id","account_id")
);
--> statement-breakpoint
CREATE TABLE "social_identities" (
	"hash" text PRIMARY KEY NOT NULL,
	"provider" text NOT NULL,
	"username" text NOT NULL,
	"subject" text NOT NULL,
	"created" boolean NOT NULL,
	"verified" boolean NOT NULL,
	"bound" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "social_secret" (
	"id" integer PRIMARY KEY DEFAULT 1 NOT NULL,
	"data" jsonb NOT NULL,
	"sealed" text,
	CONSTRAINT "social_secret_is_one_row" CHECK ("social_secret"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "social_sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"token" text NOT NULL,
	"user_id" text NOT NULL,
	"username" text NOT NULL,
	"mark" text NOT NULL,
	"ip_address" text,
	"user_agent" text,
	"expires_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_sessions_token_unique" UNIQUE("token")
);
--> statement-breakpoint
CREATE TABLE "social_users" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"email" text NOT NULL,
	"email_verified" boolean NOT NULL,
	"image" text,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_users_email_unique" UNIQUE("email")
);
--> statement-breakpoint
DROP INDEX "activities_username";--> statement-breakpoint
ALTER TABLE "social_accounts" ADD CONSTRAINT "social_accounts_user_id_social_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."social_users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "social_sessions" ADD CONSTRAINT "social_sessions_user_id_social_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."social_users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "upstream_tokens_server" ON "upstream_tokens" USING btree ("server");--> statement-breakpoint
CREATE INDEX "upstream_tokens_holder" ON "upstream_tokens" USING btree ("holder");--> statement-breakpoint
CREATE INDEX "upstream_tokens_changed" ON "upstream_tokens" USING btree ("changed");--> statement-breakpoint
CREATE INDEX "audit_username" ON "audit" USING btree ("username","number");--> statement-breakpoint
CREATE INDEX "audit_entity" ON "audit" USING btree ("entity","number");--> statement-breakpoint
CREATE INDEX "social_accounts_user" ON "social_accounts" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "social_identities_account" ON "social_identities" USING btree ("username","subject");--> statement-breakpoint
CREATE INDEX "social_sessions_user" ON "social_sessions" USING btree ("user_id","created_at");--> statement-breakpoint
CREATE INDEX "social_sessions_expires" ON "social_sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "activities_server" ON "activities" USING btree ("server","timestamp","id");--> statement-breakpoint
CREATE INDEX "activities_tool" ON "activities" USING btree ("tool","timestamp","id");--> statement-breakpoint
CREATE INDEX "activities_errors" ON "activities" USING btree ("timestamp","id") WHERE "activities"."status" = 'error';--> statement-breakpoint
CREATE INDEX "activities_group" ON "activities" USING btree ("group","timestamp","id") WHERE "activities"."group" is not null;--> statement-breakpoint
CREATE INDEX "activities_key" ON "activities" USING btree ("key_id","timestamp","id") WHERE "activities"."key_id" is not null;--> statement-breakpoint
CREATE INDEX "activities_key_name" ON "activities" USING btree ("key_name","timestamp","id") WHERE "activities"."key_name" is not null;--> statement-breakpoint
CREATE INDEX "activities_username" ON "activities" USING btree ("username","timestamp","id");