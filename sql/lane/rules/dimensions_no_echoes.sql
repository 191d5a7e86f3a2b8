-- In place of dimensions_echoes.sql where echoes are not recognised.
, revalued AS NOT MATERIALIZED (SELECT v.campaign, v.dims, v.code, v.messages, v.events FROM valued v)
